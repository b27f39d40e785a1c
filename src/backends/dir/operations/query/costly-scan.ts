import type { Milestones } from "../../engine/milestones.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import type { NativeQueryBase } from "../../engine/native/query.ts";
import { applyClauses, type Columns, rowsOf, selectColumns } from "./clauses.ts";
import type { QueryFields } from "./fields.ts";

/**
 * A scan whose costly condition finds row ids first, so that it stops soon after its call. The engine would gather wide columns of many rows before it
 * gives the first one.
 */
export interface CostlyScan {
  readonly where: string;
  readonly milestones: Milestones;
  /** Whether rows that an index for the condition does not have yet are left out. */
  readonly fast: boolean;
  /** Number of rows that are left out at the start, and the maximum number of rows behind them. */
  readonly skipRows: number;
  readonly maxRows: number | undefined;
  /** Builds the query for rows by their ids. */
  readonly query: (ids: readonly bigint[]) => NativeQueryBase;
}

/**
 * Builds a costly scan from a request whose condition is checked.
 *
 * @param milestonesOf returns the milestones of a condition; undefined if the scan cannot have any
 */
export async function costlyScan(
  table: NativeTable,
  request: QueryFields,
  columns: Columns | undefined,
  milestonesOf: (filter: string) => Promise<Milestones | undefined>,
): Promise<CostlyScan | undefined> {
  const { filter: where, orderBy, fastSearch: fast = false } = request;
  if (where === undefined || orderBy.length > 0) return undefined;
  const milestones = await milestonesOf(where);
  if (milestones === undefined) return undefined;
  const { limit, offset } = rowsOf(request, false);
  return {
    where,
    milestones,
    fast,
    skipRows: offset,
    maxRows: limit,
    query(ids) {
      const query = table.query();
      applyClauses(query, { ...request, filter: filterOf(ids) });
      selectColumns(query, columns);
      if (request.withRowId) query.withRowId();
      return query;
    },
  };
}

/** Returns the condition that rows have one of the ids. */
export function filterOf(ids: readonly bigint[]): string {
  return `_rowid IN (${ids.length === 0 ? NO_ROW : ids.join(",")})`;
}

/** An id that no row has. */
const NO_ROW = "18446744073709551615";
