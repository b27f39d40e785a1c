import type { SqlCall, SqlEngine, SqlWrites } from "../sql-engine.ts";

/** A change that is checked. */
export interface PreparedWrite {
  /** Parameters, as `SqlStatement` has them. */
  readonly parameters: Uint8Array;
  /**
   * Makes the change, and returns the number of rows.
   *
   * @param parameters may have several rows: an insert adds the rows of all, and another change is made for each
   */
  run(
    parameters: Uint8Array | undefined,
    writes: SqlWrites,
    call: Pick<SqlCall, "tables" | "signal">,
  ): Promise<bigint>;
}

/** Prepares a query, as {@link SqlEngine.prepare} does. */
export type PrepareQuery = SqlEngine["prepare"];

/** What the queries in statements that write are prepared by. */
export interface PrepareQueries {
  readonly prepareQuery: PrepareQuery;
  readonly planView: SqlEngine["planView"];
}

/** Returns an IPC stream for each row of parameters; one of nothing if there are none. */
export async function rowsOf(
  parameters: Uint8Array | undefined,
): Promise<readonly (Uint8Array | undefined)[]> {
  if (parameters === undefined || parameters.byteLength === 0) return [undefined];
  const { tableFromIPC, tableToIPC } = await import("apache-arrow");
  const table = tableFromIPC(parameters);
  return Array.from({ length: table.numRows }, (_, at) => tableToIPC(table.slice(at, at + 1), "stream"));
}
