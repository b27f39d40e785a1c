import { formatFieldPath, parseFieldPath } from "../../../../arrow/field-path.ts";
import { createPace } from "../../../../arrow/pace.ts";
import type { ArrowSchema } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { NativeTable } from "../../engine/native.ts";
import type { NativeQueryBase, NativeVectorQuery } from "../../engine/native-query.ts";
import { checkExpressions, onePredicate } from "../../engine/predicate.ts";
import { checkCounts, DEFAULT_SEARCH_ROWS, isSearch, type QueryFields, withinTable } from "./fields.ts";
import { type TextSearch, textSearch } from "./text.ts";
import { type VectorSearch, vectorSearch } from "./vector.ts";

/** The largest limit that the engine takes; LanceDB's clients send the largest integer for "no limit". */
const MAX_LIMIT = 0x7fff_ffff;

/** The column of row ids. */
export const ROW_ID = "_rowid";

/** The column of the ranks that a hybrid search has fused. */
export const RELEVANCE = "_relevance_score";

/** The scores that the engine puts beside the columns of a hybrid search by itself. */
const HYBRID_SCORES = ["_score", RELEVANCE];

/** A query of the engine's for some of the vectors of a request. */
export interface Run {
  /** Builds it, when its turn has come. */
  readonly query: () => NativeQueryBase;
  /** The number of the first of them, and how many there are; 0 and 1 for a query without several vectors. */
  readonly firstVector: number;
  readonly vectors: number;
}

/** A query of the engine's, and what it leaves to be done with the result. */
export interface BuiltQuery {
  /** Builds the query for all vectors at once, which takes the square of their number: for plans. */
  readonly whole: () => Promise<NativeQueryBase>;
  /** What it is run as, one after the other, so that a call that ends stops between them. */
  readonly runs: readonly Run[];
  /** Whether the result has row ids that nobody asked for. */
  readonly hidesRowId: boolean;
  /** The most rows that the result has, for each query vector; undefined for no bound. */
  readonly maxRows: number | undefined;
  /** Rows to leave out at the start of the result. */
  readonly skipRows: number;
  /** A query whose output has the columns of the result; it serves when there are no rows. */
  readonly shape: NativeQueryBase;
  /** Whether it is a hybrid search; then `shape` is its full-text search alone. */
  readonly hybrid: boolean;
  /** The searches that the engine explains one by one, by name. */
  readonly steps: readonly (readonly [name: string, query: NativeQueryBase])[];
}

/**
 * Builds the engine's query from a request.
 *
 * @throws LanceError InvalidInput, TableColumnNotFound, Unsupported
 */
export async function buildQuery(
  table: NativeTable,
  asked: QueryFields,
  schema: ArrowSchema,
): Promise<BuiltQuery> {
  checkCounts(asked);
  const request = isSearch(asked) ? await withinTable(table, asked) : asked;
  const vector = vectorSearch(request, schema);
  const text = await textSearch(request, { schema, indexedFields: () => indexedTextFields(table) });
  if (vector !== undefined && text !== undefined) return hybridQuery(table, request, schema, vector, text);

  const { limit, offset } = rowsOf(request, vector !== undefined || text !== undefined);
  const hidesRowId = needsRowId(request, vector, text) && !asksForRowId(request);
  const make = (vectors: readonly Float32Array[]) => {
    const query = vector === undefined ? table.query() : vector.apply(table.query(), vectors);
    text?.apply(query);
    applyShared(query, request);
    selectColumns(query, columnsOf(request));
    if (limit !== undefined) query.limit(limit);
    if (offset > 0) query.offset(offset);
    orderRows(query, request);
    if (request.withRowId || hidesRowId) query.withRowId();
    return query;
  };
  const all = vector?.vectors ?? [];
  return {
    async whole() {
      const query = make(all.slice(0, RUN_VECTORS));
      const pace = createPace();
      for (const other of all.slice(RUN_VECTORS)) {
        if (pace.isDue()) await pace.pause();
        (query as NativeVectorQuery).addQueryVector(other);
      }
      return query;
    },
    runs: inRuns(all).map(({ vectors, firstVector }) => ({
      query: () => make(vectors),
      firstVector,
      vectors: Math.max(1, vectors.length),
    })),
    hidesRowId,
    maxRows: limit,
    skipRows: 0,
    // Two vectors have the columns of any number.
    shape: make(all.slice(0, 2)),
    hybrid: false,
    steps: [],
  };
}

/** Query vectors that are searched at a time. */
const RUN_VECTORS = 64;

/** Splits query vectors; no part has a single one, whose result would have no number. */
function inRuns(vectors: readonly Float32Array[]) {
  const parts = Math.max(1, Math.floor(vectors.length / RUN_VECTORS));
  const starts = Array.from({ length: parts }, (_, i) => Math.floor((i * vectors.length) / parts));
  return starts.map((firstVector, i) => ({
    vectors: vectors.slice(firstVector, starts[i + 1]),
    firstVector,
  }));
}

/**
 * A search for vectors and words whose ranks are fused by reciprocal rank. The engine would apply an offset
 * before the fusion, and an order to the ranks.
 */
function hybridQuery(
  table: NativeTable,
  request: QueryFields,
  schema: ArrowSchema,
  vector: VectorSearch,
  text: TextSearch,
): BuiltQuery {
  if (vector.vectors.length > 1) {
    throw new LanceError("InvalidInput", "a hybrid search takes one query vector, not several");
  }
  if (request.orderBy.length > 0) {
    throw new LanceError(
      "Unsupported",
      "the rows of a hybrid search come by relevance; order_by is not supported",
    );
  }
  const { limit = DEFAULT_SEARCH_ROWS, offset } = rowsOf(request, true);
  const asked = columnsOf(request);
  const columns = asked && {
    ...asked,
    entries: asked.entries.filter(([name]) => !HYBRID_SCORES.includes(name)),
  };
  const start = (of: { vector?: boolean; text?: boolean }) => {
    const query = of.vector ? vector.apply(table.query()) : table.query();
    if (of.text) text.apply(query);
    applyShared(query, request);
    query.limit(Math.min(limit + offset, MAX_LIMIT));
    return query;
  };
  const finish = (query: NativeQueryBase) => {
    if (request.withRowId) query.withRowId();
    selectColumns(query, columns);
    return query;
  };
  const shape = start({ text: true });
  shape.select([
    ...(columns?.entries ?? schema.fields.map(({ name }) => [name, formatFieldPath([name])])),
    ["_score", "_score"],
    ...(request.withRowId ? ([[ROW_ID, ROW_ID]] as const) : []),
    [RELEVANCE, "CAST(_score AS FLOAT)"],
  ] as [string, string][]);
  const query = () => finish(start({ vector: true, text: true }));
  return {
    whole: async () => query(),
    runs: [{ query, firstVector: 0, vectors: 1 }],
    hidesRowId: request.fastSearch === true && !asksForRowId(request),
    maxRows: limit,
    skipRows: offset,
    shape,
    hybrid: true,
    steps: [
      ["vector search", finish(start({ vector: true }))],
      ["full-text search", finish(start({ text: true }))],
    ],
  };
}

function applyShared(query: NativeQueryBase, request: QueryFields): void {
  const filter = onePredicate(request.filter);
  if (filter !== undefined) query.onlyIf(filter);
  if (request.fastSearch) query.fastSearch();
}

/** The columns of a result. */
interface Columns {
  /** Each with the expression that it shows. */
  readonly entries: readonly (readonly [name: string, expression: string])[];
  /** Whether the expressions are the columns of these names. */
  readonly plain: boolean;
}

/** The columns that a request asks for; undefined for all. */
function columnsOf({ columns }: QueryFields): Columns | undefined {
  if (columns === undefined) return undefined;
  const aliases = Object.entries(columns.columnAliases);
  if (aliases.length > 0 && columns.columnNames.length > 0) {
    throw new LanceError("InvalidInput", "columns has names and aliases; it must have one of them");
  }
  checkExpressions(
    aliases.map(([alias, expression]) => [expression, `the expression of alias ${JSON.stringify(alias)}`]),
  );
  if (aliases.length > 0) return { entries: aliases, plain: false };
  if (columns.columnNames.length === 0) return undefined;
  const paths = columns.columnNames.map(
    (path) => [columnName(path), formatFieldPath(parseFieldPath(path))] as const,
  );
  return { entries: paths, plain: true };
}

/** The engine names a column as it is written, so a name of the top level has to lose its quotes. */
function columnName(path: string): string {
  const names = parseFieldPath(path);
  return names.length === 1 ? (names[0] as string) : path;
}

function selectColumns(query: NativeQueryBase, columns: Columns | undefined): void {
  if (columns?.plain) query.selectColumns(columns.entries.map(([name]) => name));
  else if (columns !== undefined)
    query.select(columns.entries.map(([name, expression]) => [name, expression]));
}

function orderRows(query: NativeQueryBase, { orderBy }: QueryFields): void {
  if (orderBy.length === 0) return;
  query.orderBy(
    orderBy.map(({ columnName: path, ascending = true, nullsFirst = false }) => ({
      columnName: columnName(path),
      ascending,
      nullsFirst,
    })),
  );
}

/** The engine orders by a column outside of the result, and searches an index alone, only with row ids. */
function needsRowId(
  request: QueryFields,
  vector: VectorSearch | undefined,
  text: TextSearch | undefined,
): boolean {
  const scan = vector === undefined && text === undefined;
  const orders = scan && request.orderBy.length > 0 && columnsOf(request) !== undefined;
  return orders || (text !== undefined && request.fastSearch === true);
}

function asksForRowId(request: QueryFields): boolean {
  return (
    request.withRowId === true || (columnsOf(request)?.entries.some(([name]) => name === ROW_ID) ?? false)
  );
}

function rowsOf({ k = 0n, offset = 0n }: QueryFields, search: boolean) {
  const skipped = Number(offset > BigInt(MAX_LIMIT) ? MAX_LIMIT : offset);
  if (k > BigInt(MAX_LIMIT)) return { limit: search ? MAX_LIMIT : undefined, offset: skipped };
  if (k > 0n) return { limit: Number(k), offset: skipped };
  return { limit: search ? DEFAULT_SEARCH_ROWS : undefined, offset: skipped };
}

/** The index type of a full-text index, as the engine lists it. */
const TEXT_INDEX = "FTS";

async function indexedTextFields(table: NativeTable): Promise<string[]> {
  const indices = await table.listIndices();
  const fields = indices
    .filter(({ indexType }) => indexType === TEXT_INDEX)
    .flatMap(({ columns }) => columns);
  return [...new Set(fields)];
}
