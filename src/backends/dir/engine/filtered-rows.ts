import type { NativeTable } from "./native/native.ts";
import type { NativeQuery } from "./native/query.ts";

/** Builds the query for the ids of the rows that meet a condition, those in the log of a table left out. */
export function filteredRows(table: Pick<NativeTable, "query">, filter: string): NativeQuery {
  const query = table.query();
  query.onlyIf(filter);
  query.selectColumns([]);
  query.withRowId();
  query.useLsm(false);
  return query;
}
