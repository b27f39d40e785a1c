import type { Milestones } from "../../engine/milestones.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import type { NativeQueryBase } from "../../engine/native/query.ts";
import { applyClauses, rowsOf } from "./clauses.ts";
import { type Columns, selectColumns } from "./columns.ts";
import type { QueryFields } from "./fields.ts";

/**
 * A scan whose costly condition finds row ids first, so that it stops soon after its call. The engine would gather wide columns of many rows before it
 * gives the first one.
 */
export interface CostlyScan {
  readonly where: string;
  readonly milestones: Milestones;
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
  const { filter: where, orderBy, fastSearch } = request;
  if (where === undefined || orderBy.length > 0 || fastSearch === true) return undefined;
  const milestones = await milestonesOf(where);
  if (milestones === undefined) return undefined;
  const { limit, offset } = rowsOf(request, false);
  return {
    where,
    milestones,
    skipRows: offset,
    maxRows: limit,
    query(ids) {
      const query = table.query();
      applyClauses(query, { ...request, filter: `_rowid IN (${ids.join(",")})` });
      selectColumns(query, columns);
      if (request.withRowId) query.withRowId();
      return query;
    },
  };
}
