import type { Table } from "apache-arrow";
import { useState } from "preact/hooks";
import { Dialog } from "../shell/dialog.tsx";
import { fieldPath } from "../table/index-types.ts";
import { DeleteRows, UpdateRows } from "../table/row-forms.tsx";
import type { TableContext } from "../table/table-context.ts";
import { conditionOf } from "./condition.ts";

interface RowActionsProps {
  readonly table: TableContext;
  readonly rows: Table;
  readonly index: number;
  onChanged(): void;
}

/** The buttons that change a row, for those who may. */
export function RowActions({ table, rows, index, onChanged }: RowActionsProps) {
  const [action, setAction] = useState<"delete" | "update">();
  if (!table.permissions.has("write") || table.at.version !== undefined) return null;
  const condition = conditionOf(rows, index);
  const close = () => setAction(undefined);
  const done = () => {
    close();
    onChanged();
  };
  return (
    <div class="buttons">
      <button type="button" onClick={() => setAction("update")}>
        Change…
      </button>
      <button type="button" class="danger" onClick={() => setAction("delete")}>
        Delete…
      </button>
      {action === "update" && (
        <Dialog title="Change rows" onClose={close}>
          <UpdateRows
            table={table}
            columns={rows.schema.fields.map(({ name }) => fieldPath(name))}
            condition={condition}
            onDone={done}
          />
        </Dialog>
      )}
      {action === "delete" && (
        <Dialog title="Delete rows" onClose={close}>
          <DeleteRows table={table} condition={condition} onDone={done} />
        </Dialog>
      )}
    </div>
  );
}
