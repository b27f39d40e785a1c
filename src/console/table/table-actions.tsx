import { useState } from "preact/hooks";
import { ActionForm, Dialog, DropForm } from "../shell/dialog.tsx";
import { late } from "../shell/notes.tsx";
import { SnippetDialog } from "../snippets/snippet-dialog.tsx";
import type { TableContext } from "./table-context.ts";

const LateImportForm = late(async () => (await import("../import/import-form.tsx")).ImportForm);

interface TableActionsProps {
  readonly table: TableContext;
  /** Whether the table is declared, so that its first rows create it. */
  readonly isEmpty: boolean;
  /** Called when the table has another name, or is gone. */
  onMoved(to: readonly string[] | undefined): void;
  onChanged(): void;
}

type Action = "import" | "rename" | "drop" | "snippet";

/** The buttons for what the caller may do to a table as a whole. */
export function TableActions({ table, isEmpty, onMoved, onChanged }: TableActionsProps) {
  const { connection, id, permissions, supports } = table;
  const isManaged = permissions.has("manage");
  const [action, setAction] = useState<Action>();
  const close = () => setAction(undefined);
  const name = id.at(-1) ?? "";
  return (
    <div class="actions">
      {!isEmpty && (
        <button type="button" onClick={() => setAction("snippet")}>
          Copy as…
        </button>
      )}
      {permissions.has("write") && (
        <button type="button" onClick={() => setAction("import")}>
          Add rows
        </button>
      )}
      {isManaged && supports("renameTable") && (
        <button type="button" onClick={() => setAction("rename")}>
          Rename
        </button>
      )}
      {isManaged && supports("dropTable") && (
        <button type="button" class="danger" onClick={() => setAction("drop")}>
          Drop
        </button>
      )}
      {action === "snippet" && <SnippetDialog table={table} onClose={close} />}
      {action === "import" && (
        <Dialog title={`Add rows to ${name}`} isWide onClose={close}>
          <LateImportForm
            connection={connection}
            parent={id.slice(0, -1)}
            target={name}
            targetMode={isEmpty ? "create" : "append"}
            onDone={() => {
              close();
              onChanged();
            }}
          />
        </Dialog>
      )}
      {action === "rename" && (
        <Dialog title={`Rename ${name}`} onClose={close}>
          <Rename table={table} onMoved={onMoved} />
        </Dialog>
      )}
      {action === "drop" && (
        <Dialog title={`Drop ${name}`} onClose={close}>
          <Drop table={table} onMoved={onMoved} />
        </Dialog>
      )}
    </div>
  );
}

type ChangeProps = Pick<TableActionsProps, "table" | "onMoved">;

function Rename({ table: { connection, id }, onMoved }: ChangeProps) {
  const old = id.at(-1) ?? "";
  const [name, setName] = useState(old);
  const parent = id.slice(0, -1);
  const rename = async () => {
    await connection.namespace.renameTable({ id, newTableName: name, newNamespaceId: parent });
    onMoved([...parent, name]);
  };
  return (
    <ActionForm action="Rename" isReady={name !== "" && name !== old} run={rename}>
      <label>
        New name
        <input value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
    </ActionForm>
  );
}

function Drop({ table: { connection, id }, onMoved }: ChangeProps) {
  const name = id.at(-1) ?? "";
  const drop = async () => {
    await connection.namespace.dropTable({ id });
    onMoved(undefined);
  };
  return (
    <DropForm name={name} drop={drop}>
      The table and all its versions, branches and indices are deleted. Nothing brings them back.
    </DropForm>
  );
}
