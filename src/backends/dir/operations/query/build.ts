import { fieldNamed } from "../../../../arrow/field-path.ts";
import type { ArrowSchema } from "../../../../arrow/schema.ts";
import { DEFAULT_SEARCH_ROWS, isSearch } from "../../../../namespace/search-rows.ts";
import { createPace, inSlices, type Pace } from "../../../../runtime/pace.ts";
import type { Milestones } from "../../engine/milestones.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import type { NativeQueryBase, NativeVectorQuery } from "../../engine/native/query.ts";
import { filteredRows } from "../../engine/passing-rows.ts";
import { MAX_BATCH_ROWS, MAX_EXACT_ROWS } from "../../engine/row-widths.ts";
import { COSTLY_STEPS, costSteps, rowsOfSteps } from "../../engine/sql/costs.ts";
import { predicateSteps } from "../../engine/sql/predicate.ts";
import type { Guarded } from "../tables/call-data.ts";
import type { Reads } from "../tables/refuse-misread.ts";
import {
  applyClauses,
  type Columns,
  columnsOf,
  keysOf,
  MAX_LIMIT,
  nameOf,
  orderRows,
  ROW_ID,
  rowsOf,
  selectColumns,
  withFoundRow,
} from "./clauses.ts";
import { type CostlyScan, costlyScan, filterOf } from "./costly-scan.ts";
import { checkCounts, type QueryFields, withinTable } from "./fields.ts";
import { hybridQueries, withoutScores } from "./hybrid.ts";
import { type TextSearch, textSearch } from "./text.ts";
import { type QueryVector, type VectorSearch, vectorSearch } from "./vector.ts";

/** Maximum number of rows that the engine reads at a time for the result of a search. */
const GATHERED_ROWS = 8192;

/** An engine query for some of the vectors of a request. */
export interface Run {
  /** Builds the query when its turn has come. */
  readonly query: () => Promise<NativeQueryBase>;
  /** The index of the first of these vectors, and their number; 0 and 1 for a query whose result has no such index. */
  readonly firstVector: number;
  readonly vectors: number;
}

/** Rows that the engine gathers before it gives the first one. */
export interface Gathered {
  /** Maximum number of rows that it finds; 0 for a scan without an order. */
  readonly rows: number;
  /** Maximum number of rows that it holds with their columns at a time. */
  readonly atATime: number;
  /** Number of bytes that it keeps of each row that it finds: a vector. */
  readonly keptBytes: number;
  /** The condition that the rows of a scan meet. */
  readonly where: string | undefined;
}

/** Rows that an index does not have yet. */
export interface Outside {
  /** The paths of the fields of which the engine reads all values of these rows. */
  readonly fields: readonly string[];
  readonly rows: number;
}

/** A query with a costly condition that the engine cannot stop once it has begun: a search, or a scan with an order. */
export interface CostlyFilter {
  readonly where: string;
  /** Number of steps of the condition for each row. */
  readonly steps: number;
  /** Maximum number of rows for which the engine evaluates the condition; Infinity for those of the table. */
  readonly rows: number;
  /** Returns the milestones of the condition; undefined if its rows cannot be found before the query. */
  readonly milestones: () => Promise<Milestones | undefined>;
  readonly fast: boolean;
  /** Builds the same query among the rows that meet the condition, by their ids. */
  readonly among: (ids: readonly bigint[]) => Promise<BuiltQuery>;
}

/** An engine query, with the changes that its result still needs. */
export interface BuiltQuery {
  /** Builds the query for all vectors at once, which takes the square of their number. It serves plans. */
  readonly whole: () => Promise<NativeQueryBase>;
  /** The queries to run, one after the other, so that a call that ends stops between them. */
  readonly runs: readonly Run[];
  /** Whether it may hold a thread of the engine for long, by its condition, its computed columns or its search for words. */
  readonly isCostly: boolean;
  /** Maximum number of rows that the engine reads at a time, so that it stops soon after a call that ends. */
  readonly mostBatchRows: number;
  /** The columns that the request names, as a text; undefined if there are too many to keep their width. */
  readonly columns: string | undefined;
  /**
   * SQL expressions of which the engine reads the columns beside those of the result: the condition, computed columns, keys of the order, and fields
   * without an index that are searched for words.
   */
  readonly conditions: readonly string[];
  /** The keys of the order that are not columns of the result. */
  readonly orders: readonly string[];
  /** The rows that are searched for words without their index, because they are not in it yet. */
  readonly outside: Outside;
  /** Whether the result has row ids that the request did not ask for. */
  readonly hidesRowId: boolean;
  /** The filter that applies after the search, for which the result has the column {@link FOUND_ROW}. */
  readonly filterAfter: string | undefined;
  /** The scan in its own way, in place of the runs; undefined for any other query. */
  readonly costlyScan: CostlyScan | undefined;
  /** The costly condition of a query that the engine cannot stop; undefined for any other query. */
  readonly costlyFilter: CostlyFilter | undefined;
  /** Maximum number of rows of the result for each query vector; undefined for no bound. */
  readonly maxRows: number | undefined;
  /** Rows that the engine gathers for each query vector before it gives the first one. */
  readonly gathered: Gathered;
  /** Returns the part of the table that it reads. */
  readonly reads: () => Promise<Reads>;
  /** Number of rows to leave out at the start of the result. */
  readonly skipRows: number;
  /** Builds a query whose output has the columns of the result; it provides the schema of a result without rows. */
  readonly shape: () => NativeQueryBase;
  /** Whether it is a hybrid search, in which case `shape` is only its full-text search. */
  readonly hybrid: boolean;
  /** The searches that the engine explains one by one, by name. */
  readonly steps: readonly (readonly [name: string, query: NativeQueryBase])[];
}

/**
 * Builds the engine's query from a request.
 *
 * @param textFields called only for a search for words
 * @param maxExpansions maximum number of words to which the fuzzy conditions of the search may expand
 * @param safeFilter returns a checked condition in the form in which the engine evaluates it correctly
 * @throws LanceError InvalidInput, TableColumnNotFound, Unsupported
 */
export async function buildQuery(
  table: NativeTable,
  given: QueryFields,
  schema: ArrowSchema,
  {
    textFields,
    safeFilter,
    maxExpansions,
    milestones,
  }: Pick<Guarded, "textFields"> & {
    readonly maxExpansions: number;
    /** Returns the milestones of a costly condition; undefined if it cannot have any. Default: no condition has any */
    readonly milestones?: ((filter: string, steps: number) => Promise<Milestones | undefined>) | undefined;
    readonly safeFilter: (filter: string | undefined) => Promise<string | undefined>;
  },
): Promise<BuiltQuery> {
  checkCounts(given);
  const asked = matchesNothing(given) ? { ...given, filter: undefined, k: 0n } : given;
  const pace = createPace();
  // Each query of the request has the condition and the columns; they are checked once.
  const checked = { ...asked, filter: await safeFilter(await inSlices(predicateSteps(asked.filter))) };
  const columns = await columnsOf(asked, schema);
  await pace.pauseIfDue();
  const request = isSearch(checked) ? await withinTable(table, checked) : checked;
  const vector = vectorSearch(request, schema);
  const text = await textSearch(request, {
    schema,
    indexedFields: async () => [...(await textFields()).keys()],
    maxExpansions,
  });
  const scanned = await scannedFor(text, request, textFields);
  const reads = async () => ({
    all: columns === undefined,
    expressions: [
      ...(columns?.entries ?? []).map(([, expression]) => expression),
      ...keysOf(asked),
      ...((await text?.fields()) ?? []),
      vector?.field,
      asked.filter,
    ],
  });
  const filterSteps = await inSlices(costSteps([asked.filter]));
  const steps = filterSteps + (await inSlices(costSteps(Object.values(asked.columns?.columnAliases ?? {}))));
  const isCostly = steps >= COSTLY_STEPS;
  const always = {
    reads,
    isCostly: text?.isCostly === true || isCostly,
    mostBatchRows: mostBatchRowsOf(steps),
  };
  const searchFor = async (part: QueryFields) => {
    const search = { table, schema, request: part, columns, vector, text, scanned };
    return vector !== undefined && text !== undefined
      ? hybrid({ ...search, vector, text })
      : plain(search, pace);
  };
  const built = { ...(await searchFor(request)), ...always, costlyScan: undefined, costlyFilter: undefined };
  const { filter: where, fastSearch: fast = false } = request;
  if (where === undefined || filterSteps < COSTLY_STEPS || built.filterAfter !== undefined) return built;
  const find = async () => milestones?.(where, filterSteps);
  const scan = isSearch(request) ? undefined : await costlyScan(table, request, columns, find);
  if (scan !== undefined) return { ...built, costlyScan: scan };
  const among = async (ids: readonly bigint[]): Promise<BuiltQuery> => {
    const query = await searchFor({ ...request, filter: filterOf(ids) });
    const rows = Math.min(query.gathered.rows, ids.length);
    // The engine reads no more next to the result than for the condition.
    return {
      ...built,
      ...query,
      conditions: built.conditions,
      gathered: { ...query.gathered, rows, where: undefined },
    };
  };
  const isAfter = vector !== undefined && text === undefined && request.prefilter === false;
  const rows = isAfter ? built.gathered.rows : Number.POSITIVE_INFINITY;
  const costlyFilter = {
    ...{ where, steps: filterSteps, rows, among, fast: fast && !isSearch(request) },
    milestones: find,
  };
  return { ...built, costlyFilter };
}

/** Whether a query asks for the columns of its result alone. The engine would read the whole table for that condition. */
function matchesNothing(request: QueryFields): boolean {
  return !isSearch(request) && request.filter?.trim().toLowerCase() === "false";
}

function mostBatchRowsOf(steps: number): number {
  if (steps === 0) return MAX_EXACT_ROWS;
  return steps >= COSTLY_STEPS ? Math.min(MAX_BATCH_ROWS, rowsOfSteps(steps)) : MAX_BATCH_ROWS;
}

/** A request that has been checked against its table. */
interface CheckedSearch {
  readonly table: NativeTable;
  readonly schema: ArrowSchema;
  readonly request: QueryFields;
  readonly columns: Columns | undefined;
  readonly vector: VectorSearch | undefined;
  readonly text: TextSearch | undefined;
  readonly scanned: Scanned;
}

/** The fields that {@link buildQuery} adds to a query of either kind. */
type Costs = "reads" | "isCostly" | "mostBatchRows" | "costlyScan" | "costlyFilter";

/** Builds a search for vectors and words. */
function hybrid(
  search: CheckedSearch & { readonly vector: VectorSearch; readonly text: TextSearch },
): Omit<BuiltQuery, Costs> {
  const { schema, request, vector, scanned } = search;
  const columns = search.columns && withoutScores(search.columns);
  const { limit = DEFAULT_SEARCH_ROWS, offset } = rowsOf(request, true);
  const rows = Math.min(limit + offset, MAX_LIMIT);
  const { query, shape, steps } = hybridQueries({ ...search, columns, rows });
  return {
    whole: query,
    runs: [{ query, firstVector: 0, vectors: 1 }],
    columns: nameOf(columns),
    ...besideColumns(request, columns, schema, scanned),
    hidesRowId: request.fastSearch === true && !asksForRowId(request, search.columns),
    filterAfter: undefined,
    maxRows: limit,
    gathered: gatheredOf(request, vector, limit, offset),
    skipRows: offset,
    shape,
    hybrid: true,
    steps,
  };
}

/** Builds a scan, or a search for vectors or for words. */
async function plain(search: CheckedSearch, pace: Pace): Promise<Omit<BuiltQuery, Costs>> {
  const { table, schema, request, columns, vector, text, scanned } = search;
  const { limit, offset } = rowsOf(request, vector !== undefined || text !== undefined);
  const hidesRowId = needsRowId(search) && !asksForRowId(request, columns);
  // The engine's Node API always filters before a search for words alone.
  const after = vector === undefined && text !== undefined && request.prefilter === false;
  const filter = after ? request.filter : undefined;
  const searched = filter === undefined ? request : { ...request, filter: undefined };
  const selected = filter === undefined ? columns : withFoundRow(columns, schema);
  // The search may find nothing on which the filter would fail.
  if (filter !== undefined) await filteredRows(table, filter).explainPlan(false);
  const make = (vectors: readonly QueryVector[]) => {
    const query = vector === undefined ? table.query() : vector.apply(table.query(), vectors);
    text?.apply(query);
    applyClauses(query, searched);
    selectColumns(query, selected);
    if (limit !== undefined) query.limit(filter === undefined ? limit : Math.min(limit + offset, MAX_LIMIT));
    if (offset > 0 && filter === undefined) query.offset(offset);
    // The engine panics where it orders no rows.
    if (limit !== 0) orderRows(query, request);
    if (request.withRowId || hidesRowId) query.withRowId();
    return query;
  };
  const makeInSteps = async (vectors: readonly QueryVector[]) => {
    pace.begin();
    const query = make(vectors.slice(0, RUN_VECTORS));
    for (const other of vectors.slice(RUN_VECTORS)) {
      await pace.pauseIfDue();
      (query as NativeVectorQuery).addQueryVector(Float32Array.from(other));
    }
    return query;
  };
  const all = vector?.vectors ?? [];
  const isOneSearch = vector?.isOneSearch === true;
  // Searches whose results are ordered together cannot run one after the other.
  const runs = isOneSearch || request.orderBy.length > 0 ? [{ vectors: all, firstVector: 0 }] : inRuns(all);
  await pace.pauseIfDue();
  return {
    whole: () => makeInSteps(all),
    runs: runs.map(({ vectors, firstVector }) => ({
      query: () => makeInSteps(vectors),
      firstVector,
      vectors: isOneSearch ? 1 : Math.max(1, vectors.length),
    })),
    columns: nameOf(columns),
    ...besideColumns(request, columns, schema, scanned),
    hidesRowId,
    filterAfter: filter,
    maxRows: limit,
    gathered: gatheredOf(request, vector, limit, offset),
    skipRows: filter === undefined ? 0 : offset,
    // Results for two vectors have the same columns as results for more.
    shape: () => make(all.slice(0, 2)),
    hybrid: false,
    steps: [],
  };
}

/** Number of query vectors that are searched at a time. */
const RUN_VECTORS = 64;

/** Splits query vectors. No part has a single vector, because the engine would not number its result. */
function inRuns(vectors: readonly QueryVector[]) {
  const parts = Math.max(1, Math.floor(vectors.length / RUN_VECTORS));
  const starts = Array.from({ length: parts }, (_, i) => Math.floor((i * vectors.length) / parts));
  return starts.map((firstVector, i) => ({
    vectors: vectors.slice(firstVector, starts[i + 1]),
    firstVector,
  }));
}

/** Whether the engine needs row ids: to order by a column outside of the result, or to search an index alone. */
function needsRowId({ request, columns, vector, text }: CheckedSearch): boolean {
  const scan = vector === undefined && text === undefined;
  const orders = scan && request.orderBy.length > 0 && columns !== undefined;
  return orders || (text !== undefined && request.fastSearch === true);
}

function asksForRowId({ withRowId }: QueryFields, columns: Columns | undefined): boolean {
  return withRowId === true || (columns?.entries.some(([name]) => name === ROW_ID) ?? false);
}

/** The values that a search for words reads without an index. */
interface Scanned {
  /** The paths of the fields without an index, of which the engine reads all values. */
  readonly fields: readonly string[];
  readonly outside: Outside;
}

async function scannedFor(
  text: TextSearch | undefined,
  { fastSearch = false }: QueryFields,
  textFields: Guarded["textFields"],
): Promise<Scanned> {
  if (text === undefined) return { fields: [], outside: { fields: [], rows: 0 } };
  const [searched, indexed] = [await text.fields(), await textFields()];
  const stale = fastSearch ? [] : searched.filter((field) => (indexed.get(field) ?? 0) > 0);
  return {
    fields: searched.filter((field) => !indexed.has(field)),
    outside: { fields: stale, rows: Math.max(0, ...stale.map((field) => indexed.get(field) ?? 0)) },
  };
}

/** Returns what the engine reads beside the columns of a result. */
function besideColumns(
  { filter, orderBy, columns: asked }: QueryFields,
  columns: Columns | undefined,
  { fields }: ArrowSchema,
  scanned: Scanned,
): Pick<BuiltQuery, "conditions" | "orders" | "outside"> {
  const named = new Set(columns?.entries.map(([, expression]) => expression));
  const orders = columns === undefined ? [] : keysOf({ orderBy }).filter((key) => !named.has(key));
  const computed = Object.values(asked?.columnAliases ?? {}).filter(
    (expression) => fieldNamed(fields, expression) === undefined,
  );
  const conditions = [...(filter === undefined ? [] : [filter]), ...computed, ...orders, ...scanned.fields];
  return { conditions, orders, outside: scanned.outside };
}

/** The engine sorts whole rows in memory; a search reads the columns of its rows when it knows which they are. */
function gatheredOf(
  request: QueryFields,
  vector: VectorSearch | undefined,
  limit = Number.MAX_SAFE_INTEGER,
  offset = 0,
): Gathered {
  const [search, ordered] = [isSearch(request), request.orderBy.length > 0];
  return {
    rows: search || ordered ? limit + offset : 0,
    atATime: ordered ? Number.MAX_SAFE_INTEGER : GATHERED_ROWS,
    keptBytes: vector?.vectorBytes ?? 0,
    where: search ? undefined : request.filter,
  };
}
