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
