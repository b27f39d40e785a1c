import type { QueryTableRequest } from "../gen/lance/namespace/v1/query_pb.ts";
import { LanceError } from "./errors.ts";

/** Number of rows of a search by default. */
export const DEFAULT_SEARCH_ROWS = 10;

type Search = Pick<QueryTableRequest, "vector" | "fullTextQuery">;

/** Whether a query searches for vectors or words; any other query is a scan, which returns all rows by default. */
export function isSearch(query: Search): boolean {
  const { stringQuery, structuredQuery } = query.fullTextQuery ?? {};
  return isVectorSearch(query) || stringQuery !== undefined || structuredQuery !== undefined;
}

/** Whether a query searches for vectors, with or without words. */
export function isVectorSearch({ vector }: Pick<Search, "vector">): boolean {
  const { singleVector = [], multiVector = [] } = vector ?? {};
  return singleVector.length > 0 || multiVector.some(({ values }) => values.length > 0);
}

/**
 * Refuses to search for the nearest 0 vectors, as the engine does. Scans and searches for words may have 0 rows.
 *
 * @throws LanceError InvalidInput
 */
export function checkNearest(k: bigint | undefined): void {
  if (k === 0n) throw new LanceError("InvalidInput", "k must be positive in a vector search");
}
