import type { Table } from "apache-arrow";
import { useState } from "preact/hooks";
import { Dialog } from "../shell/dialog.tsx";
import { formatCount } from "../shell/format.ts";
import { useCall } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import { fieldPath } from "../table/index-types.ts";
import { DeleteRows, UpdateRows } from "../table/row-forms.tsx";
import type { TableContext } from "../table/table-context.ts";
import { conditionOf, orderingOf, orderOf, orderText, type RowOrder } from "./columns.ts";
import { Grid, type OnLike } from "./grid.tsx";

/** Rows on a page. */
const PAGE_ROWS = 50;

interface PreviewProps {
  readonly table: TableContext;
  readonly onLike: OnLike;
  /** Called when rows have changed. */
  onChanged(): void;
}

/** Rows of a table, page by page. */
export function Preview({ table, onLike, onChanged }: PreviewProps) {
  const { connection, id, at, current, params, onParams } = table;
  const { namespace } = connection;
  const offset = Math.max(0, Number.parseInt(params["offset"] ?? "0", 10) || 0);
  const order = orderOf(params["order"]);
  const place = [id.join("/"), at.version, at.branch, current];
  const count = useCall(
    async (signal) => (await namespace.countTableRows({ id, ...at }, { signal })).count,
    [namespace, ...place],
  );
  const query = { id, ...at, orderBy: orderingOf(order) };
  const { value, error, isRunning, reload } = useCall(
    async (signal) => ({
      rows: await namespace.queryTable({ ...query, k: PAGE_ROWS, offset }, { signal }).toTable(),
      offset,
    }),
    [namespace, ...place, offset, params["order"]],
  );
  const open = (next: number, sorted: RowOrder | undefined) =>
    onParams({ offset: next > 0 ? String(next) : undefined, order: orderText(sorted) });
  if (error !== undefined) return <ErrorNote error={error} retry={reload} />;
  if (value === undefined) return <Waiting what="Reading rows…" />;
  const { rows, offset: start } = value;
  if (rows.numRows === 0 && start === 0) return <EmptyNote>The table has no rows yet.</EmptyNote>;
  const total = count.value === undefined ? undefined : Number(count.value);
  const end = start + rows.numRows;
  return (
    <>
      <Grid
        rows={rows}
        offset={start}
        caption={`Rows of ${id.at(-1)}`}
        onLike={onLike}
        sorting={{ order, onOrder: (next) => open(0, next) }}
        source={{
          name: id.at(-1) ?? "rows",
          readAll: (k) => namespace.queryTable({ ...query, k }).bytes(),
        }}
        actionsOf={(index) => <RowActions table={table} rows={rows} index={index} onChanged={onChanged} />}
      />
      <nav class="pager" aria-label="Pages of rows">
        <button
          type="button"
          disabled={start === 0 || isRunning}
          onClick={() => open(Math.max(0, start - PAGE_ROWS), order)}
        >
          Previous
        </button>
        <span role="status">
          {formatCount(start + 1)} to {formatCount(end)}
          {total !== undefined && ` of ${formatCount(total)}`}
        </span>
        <button
          type="button"
          disabled={rows.numRows < PAGE_ROWS || end === total || isRunning}
          onClick={() => open(start + PAGE_ROWS, order)}
        >
          Next
        </button>
      </nav>
    </>
  );
}

interface RowActionsProps {
  readonly table: TableContext;
  readonly rows: Table;
  readonly index: number;
  onChanged(): void;
}

/** The buttons that change a row, for those who may. */
function RowActions({ table, rows, index, onChanged }: RowActionsProps) {
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
