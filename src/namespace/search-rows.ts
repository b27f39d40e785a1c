import type { QueryTableRequest } from "../gen/lance/namespace/v1/query_pb.ts";

/** Number of rows of a search by default. */
export const DEFAULT_SEARCH_ROWS = 10;

/** Whether a query searches for vectors or words; any other query is a scan, which returns all rows by default. */
export function isSearch({
  vector,
  fullTextQuery,
}: Pick<QueryTableRequest, "vector" | "fullTextQuery">): boolean {
  const { singleVector = [], multiVector = [] } = vector ?? {};
  const { stringQuery, structuredQuery } = fullTextQuery ?? {};
  return (
    singleVector.length > 0 ||
    multiVector.some(({ values }) => values.length > 0) ||
    stringQuery !== undefined ||
    structuredQuery !== undefined
  );
}
