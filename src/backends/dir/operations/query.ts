import type { QueryTableRequest } from "../../../gen/lance/namespace/v1/query_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { NativeQueryBase, NativeTable, NativeVectorQuery } from "../engine/native.ts";
import { onePredicate } from "../engine/predicate.ts";

/** The vector column where a request names none and the table has one of this name. */
const DEFAULT_VECTOR_COLUMN = "vector";

const DISTANCES: Readonly<Record<string, string>> = {
  l2: "l2",
  euclidean: "l2",
  cosine: "cosine",
  dot: "dot",
  inner_product: "dot",
  hamming: "hamming",
};

/** The rows of a search where the request does not say. */
const DEFAULT_SEARCH_ROWS = 10;

/**
 * Builds the engine's query from a request.
 *
 * @param columns the names of the table's top-level columns
 * @throws LanceError InvalidInput, Unsupported
 */
export function buildQuery(
  table: NativeTable,
  request: QueryTableRequest,
  columns: readonly string[],
): NativeQueryBase {
  const vectors = queryVectors(request);
  const [first] = vectors;
  const words = request.fullTextQuery;
  if (first !== undefined && words !== undefined) throw unsupported("hybrid search");
  const query =
    first === undefined ? table.query() : vectorQuery(table, request, first, vectors.slice(1), columns);
  if (words !== undefined) {
    if (words.stringQuery === undefined) throw unsupported("structured full-text search");
    const { query: text, columns: searched } = words.stringQuery;
    query.fullTextSearch({ query: text, columns: searched.length > 0 ? searched : null });
  }
  const filter = onePredicate(request.filter);
  if (filter !== undefined) query.onlyIf(filter);
  selectColumns(query, request);
  if (request.withRowId) query.withRowId();
  if (request.fastSearch) query.fastSearch();
  if (request.orderBy.length > 0) {
    query.orderBy(
      request.orderBy.map(({ columnName, ascending = true, nullsFirst = false }) => ({
        columnName,
        ascending,
        nullsFirst,
      })),
    );
  }
  limitRows(query, request, first !== undefined || words !== undefined);
  return query;
}

function queryVectors({ vector }: QueryTableRequest): Float32Array[] {
  if (vector === undefined) return [];
  const { singleVector, multiVector } = vector;
  if (singleVector.length > 0 && multiVector.length > 0) {
    throw new LanceError("InvalidInput", "vector has one and several; it must have one of them");
  }
  if (singleVector.length > 0) return [Float32Array.from(singleVector)];
  return multiVector.filter(({ values }) => values.length > 0).map(({ values }) => Float32Array.from(values));
}

function vectorQuery(
  table: NativeTable,
  request: QueryTableRequest,
  first: Float32Array,
  others: readonly Float32Array[],
  columns: readonly string[],
): NativeVectorQuery {
  const query = table.query().nearestTo(first);
  for (const other of others) query.addQueryVector(other);
  const column =
    request.vectorColumn || (columns.includes(DEFAULT_VECTOR_COLUMN) ? DEFAULT_VECTOR_COLUMN : "");
  if (column !== "") query.column(column);
  if (request.distanceType) query.distanceType(distanceName(request.distanceType));
  if (request.prefilter === false) query.postfilter();
  if (request.lowerBound !== undefined || request.upperBound !== undefined) {
    query.distanceRange(request.lowerBound, request.upperBound);
  }
  if (request.nprobes) query.nprobes(request.nprobes);
  if (request.minimumNprobes) query.minimumNprobes(request.minimumNprobes);
  if (request.maximumNprobes !== undefined) query.maximumNprobes(request.maximumNprobes);
  if (request.refineFactor) query.refineFactor(request.refineFactor);
  if (request.ef) query.ef(request.ef);
  if (request.bypassVectorIndex) query.bypassVectorIndex();
  return query;
}

function distanceName(name: string): string {
  const known = Object.hasOwn(DISTANCES, name.toLowerCase()) ? DISTANCES[name.toLowerCase()] : undefined;
  if (known === undefined) {
    throw new LanceError(
      "InvalidInput",
      `distance_type ${JSON.stringify(name)} is none of ${Object.keys(DISTANCES).join(", ")}`,
    );
  }
  return known;
}

function selectColumns(query: NativeQueryBase, { columns }: QueryTableRequest): void {
  if (columns === undefined) return;
  const aliases = Object.entries(columns.columnAliases);
  if (aliases.length > 0 && columns.columnNames.length > 0) {
    throw new LanceError("InvalidInput", "columns has names and aliases; it must have one of them");
  }
  if (aliases.length > 0) query.select(aliases);
  else if (columns.columnNames.length > 0) query.selectColumns(columns.columnNames);
}

/** The largest limit that the engine takes; LanceDB's clients send the largest integer for "no limit". */
const MAX_LIMIT = 0x7fff_ffff;

function limitRows(
  query: NativeQueryBase,
  { k = 0n, offset = 0n }: QueryTableRequest,
  search: boolean,
): void {
  if (k < 0n || offset < 0n) throw new LanceError("InvalidInput", "k and offset must not be negative");
  const unlimited = k === 0n || k > BigInt(MAX_LIMIT);
  if (!unlimited) query.limit(Number(k));
  else if (search) query.limit(k === 0n ? DEFAULT_SEARCH_ROWS : MAX_LIMIT);
  if (offset > 0n) query.offset(Number(offset));
}

function unsupported(what: string): LanceError {
  return new LanceError("Unsupported", `${what} is not supported yet`);
}
