import type { SourceQuery } from "../materialized/source-query.ts";
import type { Existing, SqlCall, SqlEngine, SqlWrites } from "../sql-engine.ts";
import type { Target } from "../table-names.ts";

/** A column of CREATE TABLE. */
export interface NewColumn {
  readonly name: string;
  /** Type in SQL. */
  readonly type: string;
  readonly isNullable: boolean;
}

/**
 * A statement that changes something, by its head. What follows the head is a query, whose parts stand at the places that they have in the
 * statement, for positions in errors.
 */
export type WriteStatement =
  /** @param columns Default: all columns of the table, in their order. */
  | {
      readonly kind: "insert";
      readonly target: Target;
      readonly columns?: readonly string[];
      readonly query: string;
    }
  /** The query selects the assignments as comparisons, and has the condition. */
  | { readonly kind: "update"; readonly target: Target; readonly alias: string; readonly query: string }
  /** The query has the condition. */
  | { readonly kind: "delete"; readonly target: Target; readonly alias: string; readonly query: string }
  | {
      readonly kind: "createTableAs";
      readonly target: Target;
      readonly existing: Existing;
      readonly query: string;
    }
  | {
      readonly kind: "createTable";
      readonly target: Target;
      readonly existing: Existing;
      readonly columns: readonly NewColumn[];
    }
  | { readonly kind: "dropTable"; readonly target: Target; readonly isOptional: boolean }
  | {
      readonly kind: "createView";
      readonly target: Target;
      readonly existing: Existing;
      readonly query: string;
      /** The query as the view keeps it, without spaces in place of the head. */
      readonly text: string;
    }
  | { readonly kind: "dropView"; readonly target: Target; readonly isOptional: boolean }
  | {
      readonly kind: "createMaterializedView";
      readonly target: Target;
      /** Never "replace". */
      readonly existing: Existing;
      readonly autoRefresh: boolean;
      readonly query: SourceQuery;
    }
  /** @param isFull whether all rows are replaced */
  | { readonly kind: "refreshMaterializedView"; readonly target: Target; readonly isFull: boolean }
  | { readonly kind: "dropMaterializedView"; readonly target: Target; readonly isOptional: boolean };

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
