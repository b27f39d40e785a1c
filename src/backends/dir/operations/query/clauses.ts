import { formatFieldPath, parseFieldPath } from "../../../../arrow/field-path.ts";
import { DEFAULT_SEARCH_ROWS } from "../../../../namespace/search-rows.ts";
import type { NativeQueryBase } from "../../engine/native/query.ts";
import { columnName } from "./columns.ts";
import type { QueryFields } from "./fields.ts";

/** Maximum limit that the engine takes. LanceDB's clients send the largest integer for "no limit". */
export const MAX_LIMIT = 0x7fff_ffff;

/** Gives a query the clauses that scans and searches of all kinds have. */
export function applyClauses(query: NativeQueryBase, request: QueryFields): void {
  if (request.filter !== undefined) query.onlyIf(request.filter);
  if (request.fastSearch) query.fastSearch();
  if (request.useLsm !== undefined) query.useLsm(request.useLsm);
}

/** Gives a query its order. */
export function orderRows(query: NativeQueryBase, { orderBy }: QueryFields): void {
  if (orderBy.length === 0) return;
  query.orderBy(
    orderBy.map(({ columnName: path, ascending = true, nullsFirst = false }) => ({
      columnName: columnName(path),
      ascending,
      nullsFirst,
    })),
  );
}

/** Returns the paths of the keys of an order, in the form in which SQL has them. */
export function keysOf({ orderBy }: Pick<QueryFields, "orderBy">): string[] {
  return orderBy.map(({ columnName: path }) => formatFieldPath(parseFieldPath(path)));
}

/**
 * Returns the number of rows of a result, and of those before it that are left out.
 *
 * @param search whether the request is a search, which has a limit by default
 */
export function rowsOf({ k, offset = 0n }: QueryFields, search: boolean) {
  if (k === 0n) return { limit: 0, offset: 0 };
  const skipped = Number(offset > BigInt(MAX_LIMIT) ? MAX_LIMIT : offset);
  if (k === undefined) return { limit: search ? DEFAULT_SEARCH_ROWS : undefined, offset: skipped };
  if (k > BigInt(MAX_LIMIT)) return { limit: search ? MAX_LIMIT : undefined, offset: skipped };
  return { limit: Number(k), offset: skipped };
}
