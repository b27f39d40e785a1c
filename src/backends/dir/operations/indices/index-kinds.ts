import type { ArrowField } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { NativeIndexMakers, NativeIndexParameters } from "../../engine/native/index.ts";
import { loadNative } from "../../engine/native/load.ts";
import { INDEX_SEEDS, type IndexSeed } from "../../format/changes/index-seed.ts";
import { distanceOf, type IndexFields, OUT_OF_REACH_OPTIONS, type ParameterList } from "./index-fields.ts";

/** A kind of index that can be built. */
export interface IndexKind extends ParameterList {
  /** The engine's name of the kind in its list of indices. */
  readonly listed: string;
  /** Other names in requests. */
  readonly aliases: readonly string[];
  readonly vector: boolean;
  make: MakeIndex;
  /** How the index begins, if the engine's Node API does not begin it. */
  readonly seed?: IndexSeed;
  /** Whether only a cluster builds it. Default: false. */
  readonly needsCluster?: boolean;
  /** Whether the engine ignores it, so that only other readers of the table use it. Default: false. */
  readonly isForOthers?: boolean;
}

type MakeIndex = (
  makers: NativeIndexMakers,
  fields: IndexFields,
  partitions: number | undefined,
) => NativeIndexParameters | undefined;

const scalar = (
  name: string,
  listed: string,
  aliases: readonly string[],
  make: MakeIndex,
  takes: IndexKind["takes"] = [],
): IndexKind => ({ name, listed, aliases, vector: false, takes, make });

const seeded = (name: keyof typeof INDEX_SEEDS, listed: string, takes?: IndexKind["takes"]): IndexKind => ({
  ...scalar(name, listed, [], () => undefined, takes),
  seed: INDEX_SEEDS[name],
});

/** Parameters of every index of vectors. */
const IVF = ["distanceType", "numPartitions", "targetPartitionSize", "maxIterations", "sampleRate"] as const;
const HNSW = ["m", "efConstruction"] as const;

const vector = (
  name: string,
  listed: string,
  aliases: readonly string[],
  takes: IndexKind["takes"],
  make: (
    makers: NativeIndexMakers,
    fields: IndexFields,
    distance: string | undefined,
    partitions?: number,
  ) => NativeIndexParameters,
): IndexKind => ({
  name,
  listed,
  aliases,
  vector: true,
  takes: [...IVF, ...takes],
  make: (makers, fields, partitions) => make(makers, fields, distanceOf(fields), partitions),
});

const notHere = (name: string) => () => {
  throw new Error(`the engine's Node API builds no index of type ${name}`);
};

/** A kind for vectors that the engine's Node API does not build, and a cluster does. */
const clustered = (name: string, listed: string, takes: IndexKind["takes"]): IndexKind => ({
  ...vector(name, listed, [], takes, notHere(name)),
  needsCluster: true,
});

/** Parameters of full-text indices. */
const FTS: IndexKind["takes"] = [
  "withPosition",
  "baseTokenizer",
  "language",
  "maxTokenLength",
  "lowerCase",
  "stem",
  "removeStopWords",
  "customStopWords",
  "asciiFolding",
  "minNgramLength",
  "maxNgramLength",
  "prefixOnly",
  "blockSize",
  ...OUT_OF_REACH_OPTIONS.map(([field]) => field),
];

/** The kinds that can be built. */
const KINDS: readonly IndexKind[] = [
  scalar("BTREE", "BTree", ["SCALAR"], (index) => index.btree()),
  scalar("BITMAP", "Bitmap", [], (index) => index.bitmap()),
  scalar("LABEL_LIST", "LabelList", [], (index) => index.labelList()),
  scalar("FM", "Fm", [], (index) => index.fm()),
  scalar(
    "FTS",
    "FTS",
    ["INVERTED"],
    (index, fields) =>
      index.fts(
        fields.withPosition,
        fields.baseTokenizer,
        fields.language,
        fields.maxTokenLength,
        fields.lowerCase,
        fields.stem,
        fields.removeStopWords,
        fields.customStopWords.length > 0 ? fields.customStopWords : undefined,
        fields.asciiFolding,
        fields.minNgramLength,
        fields.maxNgramLength,
        fields.prefixOnly,
        fields.blockSize,
      ),
    FTS,
  ),
  seeded("NGRAM", "NGram"),
  seeded("ZONEMAP", "ZoneMap"),
  seeded("BLOOMFILTER", "BloomFilter", ["numberOfItems", "probability"]),
  vector("IVF_FLAT", "IvfFlat", [], [], (index, { maxIterations, sampleRate }, distance, partitions) =>
    index.ivfFlat(distance, partitions, maxIterations, sampleRate),
  ),
  vector(
    "IVF_PQ",
    "IvfPq",
    ["VECTOR"],
    ["numSubVectors", "numBits"],
    (index, fields, distance, partitions) => {
      const { numSubVectors, numBits, maxIterations, sampleRate } = fields;
      return index.ivfPq(distance, partitions, numSubVectors, numBits, maxIterations, sampleRate);
    },
  ),
  vector(
    "IVF_RQ",
    "IvfRq",
    [],
    ["numBits"],
    (index, { numBits, maxIterations, sampleRate }, distance, partitions) =>
      index.ivfRq(distance, partitions, numBits, maxIterations, sampleRate),
  ),
  vector(
    "IVF_HNSW_PQ",
    "IvfHnswPq",
    ["HNSW_PQ"],
    ["numSubVectors", ...HNSW],
    (index, fields, distance, partitions) => {
      const { numSubVectors, maxIterations, sampleRate, m, efConstruction } = fields;
      return index.hnswPq(distance, partitions, numSubVectors, maxIterations, sampleRate, m, efConstruction);
    },
  ),
  vector("IVF_HNSW_SQ", "IvfHnswSq", ["HNSW_SQ"], HNSW, (index, fields, distance, partitions) => {
    const { maxIterations, sampleRate, m, efConstruction } = fields;
    return index.hnswSq(distance, partitions, maxIterations, sampleRate, m, efConstruction);
  }),
  clustered("IVF_SQ", "IvfSq", []),
  clustered("IVF_HNSW_FLAT", "IvfHnswFlat", HNSW),
  { ...scalar("RTREE", "RTree", [], notHere("RTREE")), needsCluster: true, isForOthers: true },
];

/** Kinds that Lance has, but that nothing here builds. */
const OUT_OF_REACH = ["HNSW_FLAT"];

/** Removes what makes no difference in names: case, underscores, hyphens and spaces. */
const plain = (name: string) => name.toUpperCase().replaceAll(/[-_\s]/g, "");

const BY_NAME = new Map(
  KINDS.flatMap((kind) => [kind.name, ...kind.aliases].map((name) => [plain(name), kind] as const)),
);
const LISTED = new Map<string | undefined, string>(KINDS.map(({ name, listed }) => [listed, name] as const));

/**
 * Returns the kind that a request names.
 *
 * @param hasCluster whether there is a cluster to build what the engine cannot
 * @throws LanceError Unsupported for kinds that cannot be built, InvalidInput for unknown names
 */
export function indexKind(type: string, hasCluster = false): IndexKind {
  const kind = BY_NAME.get(plain(type));
  if (kind !== undefined && (hasCluster || !kind.needsCluster)) return kind;
  if (kind !== undefined || OUT_OF_REACH.some((name) => plain(name) === plain(type))) {
    const cluster = kind === undefined ? "" : "; a Ray cluster can (docs/how-to/jobs-on-ray.md)";
    throw new LanceError(
      "Unsupported",
      `the engine's Node API cannot build indices of the type ${type}${cluster}`,
    );
  }
  const known = KINDS.filter(({ needsCluster }) => hasCluster || !needsCluster).map(({ name }) => name);
  throw new LanceError(
    "InvalidInput",
    `index_type ${JSON.stringify(type)} is not one of ${known.join(", ")}`,
  );
}

/** Whether the engine ignores the indices of a type, by its name in requests or in the format. */
export function isForOthers(type = ""): boolean {
  return BY_NAME.get(plain(type))?.isForOthers === true;
}

/** Returns the name of a kind in answers for the engine's name in lists. */
export function indexTypeName(listed: string): string {
  return LISTED.get(listed) ?? listed;
}

/**
 * Converts the parameters of a request to the engine's; undefined for a kind that has a seed.
 *
 * @param rows number of rows of the table; the number of partitions follows from it when a request gives only their
 *   size
 * @throws LanceError InvalidInput, when training the index would take unreasonably long
 */
export function indexParameters(
  kind: IndexKind,
  fields: IndexFields,
  rows: number,
): NativeIndexParameters | undefined {
  const { numPartitions, targetPartitionSize } = fields;
  const bySize = targetPartitionSize && Math.max(1, Math.round(rows / targetPartitionSize));
  const partitions = numPartitions ?? bySize;
  if (kind.vector) checkTraining(fields, partitions, rows);
  return kind.make(loadNative().Index, fields, partitions);
}

/** The engine's defaults: rows for each centroid, passes over them, and centroids of a product quantizer. */
const DEFAULTS = { sampleRate: 256, maxIterations: 50, centroids: 256 };

/** How many times longer than with the defaults the training of an index may take. The engine cannot stop it. */
const MAX_TRAINING = 4;

/**
 * Bounds the number of distances that k-means computes, relative to the defaults with as many centroids as the square
 * root of the number of rows.
 */
function checkTraining(fields: IndexFields, partitions: number | undefined, rows: number): void {
  const { sampleRate = DEFAULTS.sampleRate, maxIterations = DEFAULTS.maxIterations } = fields;
  const distances = (centroids: number, rate: number, iterations: number) =>
    Math.min(rows, rate * centroids) * centroids * iterations;
  const usual = Math.max(DEFAULTS.centroids, Math.ceil(Math.sqrt(rows)));
  const most = MAX_TRAINING * distances(usual, DEFAULTS.sampleRate, DEFAULTS.maxIterations);
  const centroids = Math.max(DEFAULTS.centroids, partitions ?? 1);
  if (rows === 0 || distances(centroids, sampleRate, maxIterations) <= most) return;
  throw new LanceError(
    "InvalidInput",
    `num_partitions, sample_rate and max_iterations together make the training of the index take more than ${MAX_TRAINING} times as long as usual for ${rows} rows`,
  );
}

/**
 * Checks properties of a column that the engine does not check, or checks only by a crash.
 *
 * @throws LanceError InvalidInput
 */
export function checkIndexedField(kind: IndexKind, fields: IndexFields, field: ArrowField): void {
  if (kind.seed !== undefined && field.children.length > 0) {
    throw new LanceError("InvalidInput", `an index of type ${kind.name} requires a column of scalar values`);
  }
  if (kind.name === "RTREE") checkGeometry(field);
  if (!kind.vector || distanceOf(fields) !== "hamming") return;
  const [item] = field.children;
  if (item?.type.name === "int" && item.type.bits === 8) return;
  throw new LanceError("InvalidInput", "the hamming distance requires vectors of 8-bit integers");
}

/** Extension types of geometries that an `RTREE` index is built of, by the form of their values. */
const SERIALIZED = ["geoarrow.wkb", "geoarrow.wkt", "ogc.wkb"];
const COORDINATES = "point linestring polygon multipoint multilinestring multipolygon box"
  .split(" ")
  .map((name) => `geoarrow.${name}`);

/** @throws LanceError InvalidInput for a column without geometries, and for coordinates whose width makes the builder panic */
function checkGeometry(field: ArrowField): void {
  const type = field.metadata["ARROW:extension:name"];
  const isGeometry = type !== undefined && [...SERIALIZED, ...COORDINATES].includes(type);
  if (!isGeometry) {
    const found = type === undefined ? "no extension type" : `the extension type ${type}`;
    throw new LanceError(
      "InvalidInput",
      `an index of type RTREE requires a column of geometries, with one of the extension types ${[...COORDINATES, ...SERIALIZED].join(", ")}; ${JSON.stringify(field.name)} has ${found}`,
    );
  }
  if (SERIALIZED.includes(type) || leavesOf(field).every(isDouble)) return;
  throw new LanceError(
    "InvalidInput",
    `an index of type RTREE requires coordinates of 64-bit floating-point numbers; ${JSON.stringify(field.name)} has others`,
  );
}

function leavesOf(field: ArrowField): readonly ArrowField[] {
  return field.children.length === 0 ? [field] : field.children.flatMap(leavesOf);
}

const isDouble = ({ type }: ArrowField) => type.name === "float" && type.bits === 64;
