import { type Table, tableFromIPC, tableToIPC } from "apache-arrow";
import { LanceError } from "../namespace/errors.ts";
import type { SqlCall, SqlEngine, SqlTableName, SqlTables } from "./sql-engine.ts";

/** Tables in memory, by their names joined with dots. */
export function tablesInMemory(
  tables: Readonly<Record<string, Table>>,
  opened: (name: SqlTableName) => void = () => {},
): SqlTables {
  return {
    async open(name) {
      opened(name);
      const table = tables[name.path.join(".")];
      if (table === undefined)
        throw new LanceError("TableNotFound", `Table '${name.path.join(".")}' was not found`);
      return { ...name, schema: tableToIPC(table.slice(0, 0), "stream"), rows: table.numRows };
    },
    async *scan({ path }, { columns }) {
      yield tableToIPC((tables[path.join(".")] as Table).select([...columns]), "stream");
    },
  };
}

/** Runs a statement, and returns its result. */
export async function runSql(
  engine: SqlEngine,
  statement: string,
  {
    tables = tablesInMemory({}),
    signal = new AbortController().signal,
    parameters,
    ...call
  }: Partial<SqlCall> & { readonly parameters?: Uint8Array } = {},
): Promise<Table> {
  const prepared = await engine.prepare(statement, { ...call, tables, signal });
  const messages: Uint8Array[] = [];
  for await (const message of prepared.run(parameters, signal)) messages.push(message);
  return tableFromIPC(Buffer.concat(messages));
}
