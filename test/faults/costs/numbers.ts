import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { Operation } from "../../../src/namespace/lance-namespace.ts";
import { NAMESPACE, TABLE } from "./target.ts";

/** Fields of a message by their local names; messages inside messages. */
export type Init = { readonly [name: string]: unknown };

const near = { vector: { singleVector: [1, 0] } };
const words = (query: Init) => ({ fullTextQuery: { structuredQuery: { query } } });
const match = { match: { terms: "p1", column: "name" } };
const SEARCHES: readonly Init[] = [
  near,
  { ...near, bypassVectorIndex: true },
  { ...near, ...words(match) },
  { vector: { multiVector: [{ values: [1, 0] }, { values: [2, 0] }] } },
  words(match),
  words({ phrase: { terms: "p1 p2", column: "name" } }),
  words({ boost: { positive: match, negative: match } }),
  { orderBy: [{ columnName: "id" }] },
];

/** Requests with many fields; for any other operation, a request that names only its object. */
const BASES: { readonly [O in Operation]?: readonly Init[] } = {
  queryTable: SEARCHES,
  analyzeTableQueryPlan: SEARCHES,
  explainTableQueryPlan: SEARCHES.map((query) => ({ query })),
  createTableIndex: [
    ...["IVF_PQ", "IVF_HNSW_SQ", "IVF_FLAT", "IVF_RQ"].map((indexType) => ({
      column: "vector",
      indexType,
      replace: true,
    })),
    { column: "name", indexType: "FTS", baseTokenizer: "ngram", replace: true },
  ],
  createTableScalarIndex: [{ column: "name", indexType: "FTS", replace: true }],
  createTableTag: [{ tag: "tag" }],
  updateTableTag: [{ tag: "tag" }],
  createTableBranch: [{ name: "branch" }],
  alterTableBackfillColumns: [{ column: "id" }],
  createTableVersion: [{ manifestPath: "nowhere" }],
  describeTableIndexStats: [{ indexName: "id_idx" }],
  countTableRows: [{}, { predicate: "id > 1" }],
  batchDeleteTableVersions: [{ ranges: [{ startVersion: 1n, endVersion: 2n }] }],
};

/** Operations on namespaces, which do not name a table. */
const OF_NAMESPACES = /Namespace|listTables$|listAllTables/;

/** A request with a place for a number. */
export interface NumberPlace {
  readonly operation: Operation;
  readonly base: Init;
  readonly path: readonly (string | number)[];
  readonly scalar: ScalarType;
}

/** Returns all places for numbers in the requests of an operation. */
export function numberPlaces(operation: Operation, input: DescMessage): NumberPlace[] {
  const id = OF_NAMESPACES.test(operation) ? NAMESPACE : TABLE;
  return (BASES[operation] ?? [{}]).flatMap((base) =>
    placesIn(input, base).map(({ path, scalar }) => ({ operation, base: { id, ...base }, path, scalar })),
  );
}

function placesIn(message: DescMessage, init: Init): Pick<NumberPlace, "path" | "scalar">[] {
  return message.fields.flatMap((field) => {
    const given = init[field.localName];
    const items: readonly (readonly [path: (string | number)[], value: unknown])[] = Array.isArray(given)
      ? given.map((item, i) => [[field.localName, i], item] as const)
      : [[[field.localName], given]];
    if (isNumber(field)) return items.map(([path]) => ({ path, scalar: field.scalar as ScalarType }));
    if (field.message === undefined || given === undefined) return [];
    const inner = field.message;
    return items.flatMap(([path, value]) =>
      placesIn(inner, value as Init).map((place) => ({ ...place, path: [...path, ...place.path] })),
    );
  });
}

const INT32 = [0, 1, -1, 2, 256, 65_536, 2 ** 31 - 1, -(2 ** 31)];
const INT64 = [
  0n,
  1n,
  -1n,
  10n ** 9n,
  2n ** 31n - 1n,
  2n ** 31n,
  2n ** 32n,
  2n ** 53n,
  2n ** 63n - 1n,
  -(2n ** 63n),
];
const FLOAT = [0, -0, -1, 1e-45, 3.4e38, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
const VALUES = new Map<ScalarType, readonly (number | bigint)[]>([
  [ScalarType.INT32, INT32],
  [ScalarType.INT64, INT64],
  [ScalarType.FLOAT, FLOAT],
  [ScalarType.DOUBLE, [...FLOAT, 1.7e308]],
]);

function isNumber(field: DescField): boolean {
  return field.fieldKind !== "map" && field.scalar !== undefined && VALUES.has(field.scalar);
}

/** Returns the numbers to try in a place. */
export function valuesFor({ scalar }: NumberPlace): readonly (number | bigint)[] {
  return VALUES.get(scalar) ?? [];
}

/** Returns the request with a number in its place. */
export function requestWith({ base, path }: NumberPlace, value: number | bigint): Init {
  const put = (into: unknown, [step, ...rest]: readonly (string | number)[]): unknown => {
    if (step === undefined) return value;
    if (Array.isArray(into)) return into.map((item, i) => (i === step ? put(item, rest) : item));
    return { ...(into as Init), [step]: put((into as Init)[step], rest) };
  };
  return put(base, path) as Init;
}
