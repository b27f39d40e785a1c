import type {
  AnalyzeTableQueryPlanRequest,
  QueryTableRequest,
} from "../../../../gen/lance/namespace/v1/query_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { checkNearest, DEFAULT_SEARCH_ROWS, isVectorSearch } from "../../../../namespace/search-rows.ts";
import type { NativeTable } from "../../engine/native/native.ts";

/** The fields that QueryTable and AnalyzeTableQueryPlan have in common. */
export type QueryFields = Omit<QueryTableRequest | AnalyzeTableQueryPlanRequest, "$typeName" | "$unknown">;

/** Fields that must not be negative, by their names in the public API. */
const COUNTS = {
  k: "k",
  offset: "offset",
  nprobes: "nprobes",
  minimumNprobes: "minimum_nprobes",
  maximumNprobes: "maximum_nprobes",
  ef: "ef",
  refineFactor: "refine_factor",
} as const;

/** Maximum number of columns that a request names; an upload has as many. */
const MAX_COLUMNS = 32_000;

/** Maximum number of keys of an order. */
const MAX_KEYS = 1000;

/**
 * Refuses negative numbers, a search for the nearest 0 vectors, and lists that are longer than any table has use for.
 *
 * @throws LanceError InvalidInput
 */
export function checkCounts(request: QueryFields): void {
  atMost(MAX_COLUMNS, request.columns?.columnNames, "column_names");
  atMost(MAX_COLUMNS, request.fullTextQuery?.stringQuery?.columns, "columns of a full-text query");
  atMost(MAX_KEYS, request.orderBy, "order_by");
  for (const [field, name] of Object.entries(COUNTS)) {
    if ((request[field as keyof typeof COUNTS] ?? 0) < 0) {
      throw new LanceError("InvalidInput", `${name} must not be negative`);
    }
  }
  if (isVectorSearch(request)) checkNearest(request.k);
}

function atMost(most: number, list: readonly unknown[] = [], name: string): void {
  if (list.length <= most) return;
  throw new LanceError("InvalidInput", `${name} has ${list.length} entries; the maximum is ${most}`);
}

/** Number of rows for which the engine may allocate memory without a look at the size of the table. */
const FEW_ROWS = 10_000;

/**
 * Limits the numbers of a search to the rows of its table. The engine allocates memory for the requested number of rows
 * before it searches, and ends the process when there is not enough. A larger number selects all rows anyway.
 */
export async function withinTable(table: NativeTable, request: QueryFields): Promise<QueryFields> {
  const { k, offset = 0n, refineFactor = 0, ef = 0 } = request;
  if (k === 0n) return request;
  const asked = k ?? BigInt(DEFAULT_SEARCH_ROWS);
  const room = (asked + offset) * BigInt(Math.max(1, refineFactor));
  if (room <= FEW_ROWS && ef <= FEW_ROWS) return request;
  const rows = BigInt(Math.max(1, await table.countRows()));
  const [most, skipped] = [least(asked, rows), least(offset, rows)];
  const found = most + skipped;
  return {
    ...request,
    k: most,
    offset: skipped,
    ...(refineFactor > 0 && {
      refineFactor: Number(least(BigInt(refineFactor), (rows + found - 1n) / found)),
    }),
    ...(ef > 0 && { ef: Number(least(BigInt(ef), rows + found)) }),
  };
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
