import { useState } from "preact/hooks";
import type { LanceError } from "../../namespace/errors.ts";
import { ActionForm } from "../shell/dialog.tsx";
import { formatCount } from "../shell/format.ts";
import { useCall } from "../shell/hooks.ts";
import type { TableContext } from "./table-context.ts";

interface RowFormProps {
  readonly table: TableContext;
  /** The condition that the form begins with. */
  readonly condition: string;
  onDone(): void;
}

/** The form that deletes the rows that meet a condition. */
export function DeleteRows({ table, condition, onDone }: RowFormProps) {
  const { connection, id, at } = table;
  const [predicate, setPredicate] = useState(condition);
  const { count, error, isCurrent } = useMatches(table, predicate);
  const run = async () => {
    await connection.namespace.deleteFromTable({ id, branch: at.branch, predicate });
    onDone();
  };
  const isReady = isCurrent && count !== undefined && count > 0n;
  return (
    <ActionForm action={`Delete ${rowsOf(count)}`} isDangerous isReady={isReady} run={run}>
      <Condition {...{ predicate, count, error }} onChange={setPredicate} />
      <p>These rows are no longer in the table. Older versions keep them, and can be restored.</p>
    </ActionForm>
  );
}

/** The form that gives a column another value in the rows that meet a condition. */
export function UpdateRows({
  table,
  columns,
  condition,
  onDone,
}: RowFormProps & { readonly columns: readonly string[] }) {
  const { connection, id, at } = table;
  const [predicate, setPredicate] = useState(condition);
  const [column, setColumn] = useState(columns[0] ?? "");
  const [expression, setExpression] = useState("");
  const { count, error, isCurrent } = useMatches(table, predicate);
  const run = async () => {
    const updates = [{ column, expression: expression.trim() }];
    await connection.namespace.updateTable({ id, branch: at.branch, predicate, updates });
    onDone();
  };
  const isReady = isCurrent && count !== undefined && count > 0n && expression.trim() !== "";
  return (
    <ActionForm action={`Change ${rowsOf(count)}`} isReady={isReady} run={run}>
      <Condition {...{ predicate, count, error }} onChange={setPredicate} />
      <label>
        Column
        <select value={column} onChange={({ currentTarget }) => setColumn(currentTarget.value)}>
          {columns.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        New value in SQL
        <input
          placeholder="'a text', 12.5, null, or price * 2"
          spellcheck={false}
          value={expression}
          onInput={({ currentTarget }) => setExpression(currentTarget.value)}
        />
      </label>
      <p>The values of these rows change in a new version. Older versions keep the old ones.</p>
    </ActionForm>
  );
}

function rowsOf(count: bigint | undefined): string {
  if (count === undefined) return "rows";
  return `${formatCount(count)} ${count === 1n ? "row" : "rows"}`;
}

/** Counts the rows that meet a condition. */
function useMatches({ connection: { namespace }, id, at }: TableContext, predicate: string) {
  const found = useCall(
    async (signal) => {
      if (predicate.trim() === "") return { predicate, count: undefined };
      const { count } = await namespace.countTableRows({ id, ...at, predicate }, { signal });
      return { predicate, count };
    },
    [namespace, predicate, at.branch],
  );
  const isCurrent = found.value?.predicate === predicate && found.error === undefined;
  return { count: isCurrent ? found.value?.count : undefined, error: found.error, isCurrent };
}

interface ConditionProps {
  readonly predicate: string;
  readonly count: bigint | undefined;
  readonly error: LanceError | undefined;
  onChange(predicate: string): void;
}

function Condition({ predicate, count, error, onChange }: ConditionProps) {
  return (
    <>
      <label>
        Rows for which
        <textarea
          rows={2}
          spellcheck={false}
          placeholder="price < 20 AND category = 'shoes'"
          value={predicate}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
      </label>
      <p role="status" class="muted">
        {error?.message ??
          (count === undefined ? "Write a condition in SQL." : `${rowsOf(count)} of the table`)}
      </p>
    </>
  );
}
