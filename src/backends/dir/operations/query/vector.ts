import { bitWidth } from "../../../../arrow/bit-width.ts";
import { type FoundField, formatFieldPath, resolveField } from "../../../../arrow/field-path.ts";
import type { ArrowField, ArrowSchema } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { NativeQuery, NativeVectorQuery } from "../../engine/native/query.ts";
import type { QueryFields } from "./fields.ts";

const DISTANCES: Readonly<Record<string, string>> = {
  l2: "l2",
  euclidean: "l2",
  cosine: "cosine",
  dot: "dot",
  inner_product: "dot",
  hamming: "hamming",
};

/** Number of partitions of an IVF index that are searched by default. */
const DEFAULT_PROBES = 20;

/** Maximum number of query vectors of a request; each is a search of its own. */
const MAX_VECTORS = 4096;

/** The components of a query vector, each within the range of a 32-bit float. */
export type QueryVector = readonly number[];

/** A nearest-neighbour search, checked against the table. */
export interface VectorSearch {
  readonly vectors: readonly QueryVector[];
  /** The path of the field that it searches. */
  readonly field: string;
  /** Whether the vectors are one search, and not one each: the column has lists of vectors, which match as a whole. */
  readonly isOneSearch: boolean;
  /** Size of a vector of the column, in bytes. */
  readonly vectorBytes: number;
  /** Turns a query into the search for all vectors, or for the given ones. */
  apply(query: NativeQuery, vectors?: readonly QueryVector[]): NativeVectorQuery;
}

/**
 * Returns the vector search of a request; undefined when it has no vector.
 *
 * @throws LanceError InvalidInput, TableColumnNotFound
 */
export function vectorSearch(request: QueryFields, schema: ArrowSchema): VectorSearch | undefined {
  const vectors = queryVectors(request);
  const [first] = vectors;
  if (first === undefined) return undefined;
  const column = vectorColumn(schema, request.vectorColumn, first.length);
  for (const vector of vectors) checkVector(vector, column);
  const distance = request.distanceType ? distanceName(request.distanceType) : undefined;
  const probes = probeRange(request);
  checkApproxMode(request.approxMode);
  return {
    vectors,
    field: formatFieldPath(column.names),
    isOneSearch: column.lists,
    vectorBytes: column.vectorBytes,
    apply(plain, [first = [], ...others] = vectors) {
      const query = plain.nearestTo(Float32Array.from(first));
      for (const other of others) query.addQueryVector(Float32Array.from(other));
      query.column(formatFieldPath(column.names));
      if (distance !== undefined) query.distanceType(distance);
      if (request.prefilter === false) query.postfilter();
      if (request.lowerBound !== undefined || request.upperBound !== undefined) {
        query.distanceRange(request.lowerBound, request.upperBound);
      }
      if (probes !== undefined) {
        query.nprobes(probes.minimum);
        if (probes.maximum !== probes.minimum) query.maximumNprobes(probes.maximum);
      }
      if (request.refineFactor) query.refineFactor(request.refineFactor);
      if (request.ef) query.ef(request.ef);
      if (request.bypassVectorIndex) query.bypassVectorIndex();
      return query;
    },
  };
}

function queryVectors({ vector }: QueryFields): QueryVector[] {
  if (vector === undefined) return [];
  const { singleVector, multiVector } = vector;
  if (singleVector.length > 0 && multiVector.length > 0) {
    throw new LanceError("InvalidInput", "vector has one and several; it must have one of them");
  }
  if (multiVector.length > MAX_VECTORS) {
    throw new LanceError(
      "InvalidInput",
      `vector has ${multiVector.length} vectors, and may have ${MAX_VECTORS}`,
    );
  }
  const all = singleVector.length > 0 ? [singleVector] : multiVector.map(({ values }) => values);
  const vectors = all.filter((values) => values.length > 0);
  // Without the empty ones, the result would number the others differently.
  if (vectors.length === 0 || vectors.length === all.length) return vectors;
  throw new LanceError("InvalidInput", "a vector among several must not be empty");
}

/**
 * Returns the range of partitions to search. A maximum of 0 means unlimited; nprobes applies to both bounds when
 * neither is set.
 */
function probeRange({ nprobes, minimumNprobes, maximumNprobes }: QueryFields) {
  if (minimumNprobes === undefined && maximumNprobes === undefined) {
    return nprobes ? { minimum: nprobes, maximum: nprobes } : undefined;
  }
  if (minimumNprobes === 0) throw new LanceError("InvalidInput", "minimum_nprobes must be at least 1");
  const bound = maximumNprobes || Number.POSITIVE_INFINITY;
  const minimum = minimumNprobes ?? Math.min(DEFAULT_PROBES, bound);
  if (minimum > bound) {
    throw new LanceError("InvalidInput", "minimum_nprobes must not be greater than maximum_nprobes");
  }
  return { minimum, maximum: maximumNprobes ?? Math.max(DEFAULT_PROBES, minimum) };
}

/** The ways to compare with quantized vectors. The first is the engine's default, and all that its Node API offers. */
const APPROX_MODES = ["normal", "fast", "accurate"];

function checkApproxMode(mode: string | undefined): void {
  if (mode === undefined || mode === APPROX_MODES[0]) return;
  const name = `approx_mode ${JSON.stringify(mode)}`;
  if (APPROX_MODES.includes(mode)) {
    throw new LanceError("Unsupported", `the engine's Node API cannot search with ${name}; leave it out`);
  }
  throw new LanceError("InvalidInput", `${name} is not one of ${APPROX_MODES.join(", ")}`);
}

/** A column that can be searched. */
interface VectorColumn extends FoundField {
  readonly dimension: number;
  /** Whether its components are bytes. */
  readonly bytes: boolean;
  /** Whether its values are lists of vectors. */
  readonly lists: boolean;
  readonly vectorBytes: number;
}

/** Returns the shape of a field of vectors or of lists of vectors; undefined for any other field. */
function vectorShape(field: ArrowField): Omit<VectorColumn, keyof FoundField> | undefined {
  const { type, children } = field;
  const [item] = children;
  if (item === undefined) return undefined;
  if (type.name === "list" || type.name === "large_list") {
    const shape = item.type.name === "fixed_size_list" ? vectorShape(item) : undefined;
    return shape && { ...shape, lists: true };
  }
  if (type.name !== "fixed_size_list") return undefined;
  const bytes = item.type.name === "int" && item.type.bits === 8 && !item.type.signed;
  const number = item.type.name === "float" || (item.type.name === "int" && item.type.bits === 8);
  const vectorBytes = (type.size * (bitWidth(item.type) ?? 0)) / 8;
  return number ? { dimension: type.size, bytes, lists: false, vectorBytes } : undefined;
}

/**
 * Returns the named column, or the only one whose vectors have the dimension of the query, wherever it is in structs.
 * The texts are those of LanceDB's local tables.
 *
 * @throws LanceError TableColumnNotFound, InvalidInput
 */
function vectorColumn(schema: ArrowSchema, path: string | undefined, dimension: number): VectorColumn {
  if (path) {
    const found = resolveField(schema, path);
    const shape = vectorShape(found.field);
    if (shape !== undefined) return { ...found, ...shape };
    throw new LanceError("InvalidInput", `column ${JSON.stringify(path)} does not hold vectors`);
  }
  const candidates = vectorColumns(schema.fields, []).filter((column) => column.dimension === dimension);
  const [only, ...others] = candidates;
  if (only === undefined) {
    throw new LanceError(
      "InvalidInput",
      `No vector column found to match with the query vector dimension: ${dimension}`,
    );
  }
  if (others.length === 0) return only;
  const names = candidates.map((column) => JSON.stringify(formatFieldPath(column.names)));
  throw new LanceError(
    "InvalidInput",
    `More than one vector columns found, please specify which column to create index or query: [${names.join(", ")}]`,
  );
}

/** Returns all columns of vectors, also those inside structs. */
function vectorColumns(fields: readonly ArrowField[], parents: readonly string[]): VectorColumn[] {
  return fields.flatMap((field) => {
    const names = [...parents, field.name];
    const shape = vectorShape(field);
    if (shape !== undefined) return [{ names, field, ...shape }];
    return field.type.name === "struct" ? vectorColumns(field.children, names) : [];
  });
}

function checkVector(vector: QueryVector, { names, dimension, bytes }: VectorColumn): void {
  const path = formatFieldPath(names);
  const column = JSON.stringify(path);
  if (vector.length !== dimension) {
    throw new LanceError(
      "InvalidInput",
      // LanceDB's clients match these words of the library.
      `query dim(${vector.length}) doesn't match the column ${path} vector dim(${dimension})`,
    );
  }
  if (!vector.every((value) => Number.isFinite(Math.fround(value)))) {
    throw new LanceError("InvalidInput", "the components of a query vector must be finite numbers");
  }
  if (bytes && !vector.every((value) => Number.isInteger(value) && value >= 0 && value <= 255)) {
    throw new LanceError("InvalidInput", `column ${column} holds bytes; components must be 0 to 255`);
  }
}

/** Returns the engine's name of a distance. @throws LanceError InvalidInput */
export function distanceName(name: string): string {
  const key = name.toLowerCase();
  const known = Object.hasOwn(DISTANCES, key) ? DISTANCES[key] : undefined;
  if (known !== undefined) return known;
  throw new LanceError(
    "InvalidInput",
    `distance_type ${JSON.stringify(name)} is not one of ${Object.keys(DISTANCES).join(", ")}`,
  );
}
