import { useState } from "preact/hooks";
import { ActionForm, DropForm } from "../shell/dialog.tsx";
import type { TableContext } from "./table-context.ts";

interface ColumnFormProps {
  readonly table: TableContext;
  onDone(): void;
}

/** Types that a column without values can have, with the expressions of such values. */
const TYPES: Readonly<Record<string, string>> = {
  text: "string",
  integer: "bigint",
  number: "double",
  "true or false": "boolean",
  date: "date",
  time: "timestamp",
};

/** The form for a new column: empty, or with a value that is computed from the others. */
export function AddColumn({ table: { connection, id, at }, onDone }: ColumnFormProps) {
  const [name, setName] = useState("");
  const [type, setType] = useState("text");
  const [computed, setComputed] = useState("");
  const isComputed = type === "computed";
  const expression = isComputed ? computed.trim() : `cast(null as ${TYPES[type]})`;
  const add = async () => {
    await connection.namespace.alterTableAddColumns({
      id,
      branch: at.branch,
      newColumns: [{ name, expression }],
    });
    onDone();
  };
  return (
    <ActionForm action="Add" isReady={name !== "" && expression !== ""} run={add}>
      <label>
        Name
        <input value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
      <label>
        Values
        <select value={type} onChange={({ currentTarget }) => setType(currentTarget.value)}>
          {Object.keys(TYPES).map((each) => (
            <option key={each} value={each}>
              {each}, null in all rows
            </option>
          ))}
          <option value="computed">computed from other columns</option>
        </select>
      </label>
      {isComputed && (
        <label>
          Expression in SQL
          <input
            placeholder="price * 1.2"
            spellcheck={false}
            value={computed}
            onInput={({ currentTarget }) => setComputed(currentTarget.value)}
          />
        </label>
      )}
      <p class="muted">The table gets a new version. The column has a value in each row that is there now.</p>
    </ActionForm>
  );
}

/** The form for another name of a column. */
export function RenameColumn({ table, column, onDone }: ColumnFormProps & { readonly column: string }) {
  const { connection, id, at } = table;
  const [rename, setName] = useState("");
  const run = async () => {
    await connection.namespace.alterTableAlterColumns({
      id,
      branch: at.branch,
      alterations: [{ path: column, rename }],
    });
    onDone();
  };
  return (
    <ActionForm action="Rename" isReady={rename !== ""} run={run}>
      <label>
        New name of {column}
        <input value={rename} onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
      <p class="muted">Queries that name the column have to change. Older versions keep the old name.</p>
    </ActionForm>
  );
}

/** The form that drops a column. */
export function DropColumn({ table, column, onDone }: ColumnFormProps & { readonly column: string }) {
  const { connection, id, at } = table;
  const drop = async () => {
    await connection.namespace.alterTableDropColumns({ id, branch: at.branch, columns: [column] });
    onDone();
  };
  return (
    <DropForm name={column} drop={drop}>
      The column and its values are no longer in the table, nor are indices on it. Older versions keep them.
    </DropForm>
  );
}
