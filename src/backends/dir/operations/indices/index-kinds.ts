import type { ArrowField } from "../../../../arrow/schema.ts";
import type { CreateTableIndexRequest } from "../../../../gen/lance/namespace/v1/index_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { loadNative } from "../../engine/native.ts";
import type { NativeIndexMakers, NativeIndexParameters } from "../../engine/native-index.ts";
import { INDEX_SEEDS, type IndexSeed } from "../../format/index-seed.ts";
import { distanceName } from "../query/vector.ts";

/**
 * The fields of a request that describe an index, without those that say where it is: plain values, which a job can
 * keep.
 */
export type IndexFields = Omit<
  CreateTableIndexRequest,
  | "$typeName"
  | "$unknown"
  | "id"
  | "identifier"
  | "delimiter"
  | "identity"
  | "context"
  | "branch"
  | "column"
  | "name"
>;

/** A kind of index that can be built. */
export interface IndexKind {
  /** The name of the kind in requests and answers. */
  readonly name: string;
  /** The engine's name of the kind in its list of indices. */
  readonly listed: string;
  /** Other names in requests. */
  readonly aliases: readonly string[];
  readonly vector: boolean;
  make: MakeIndex;
  /** How the index begins, if the engine's Node API does not begin it. */
  readonly seed?: IndexSeed;
}

type MakeIndex = (
  makers: NativeIndexMakers,
  fields: IndexFields,
  partitions: number | undefined,
) => NativeIndexParameters | undefined;

const scalar = (name: string, listed: string, aliases: readonly string[], make: MakeIndex): IndexKind => ({
  name,
  listed,
  aliases,
  vector: false,
  make,
});

const seeded = (name: keyof typeof INDEX_SEEDS, listed: string): IndexKind => ({
  ...scalar(name, listed, [], () => undefined),
  seed: INDEX_SEEDS[name],
});

const vector = (
  name: string,
  listed: string,
  aliases: readonly string[],
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
  make: (makers, fields, partitions) => make(makers, fields, distanceOf(fields), partitions),
});

/** The kinds that can be built. */
const KINDS: readonly IndexKind[] = [
  scalar("BTREE", "BTree", ["SCALAR"], (index) => index.btree()),
  scalar("BITMAP", "Bitmap", [], (index) => index.bitmap()),
  scalar("LABEL_LIST", "LabelList", [], (index) => index.labelList()),
  scalar("FM", "Fm", [], (index) => index.fm()),
  scalar("FTS", "FTS", ["INVERTED"], (index, fields) =>
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
  ),
  seeded("NGRAM", "NGram"),
  seeded("ZONEMAP", "ZoneMap"),
  seeded("BLOOMFILTER", "BloomFilter"),
  vector("IVF_FLAT", "IvfFlat", [], (index, { maxIterations, sampleRate }, distance, partitions) =>
    index.ivfFlat(distance, partitions, maxIterations, sampleRate),
  ),
  vector("IVF_PQ", "IvfPq", ["VECTOR"], (index, fields, distance, partitions) => {
    const { numSubVectors, numBits, maxIterations, sampleRate } = fields;
    return index.ivfPq(distance, partitions, numSubVectors, numBits, maxIterations, sampleRate);
  }),
  vector("IVF_RQ", "IvfRq", [], (index, { numBits, maxIterations, sampleRate }, distance, partitions) =>
    index.ivfRq(distance, partitions, numBits, maxIterations, sampleRate),
  ),
  vector("IVF_HNSW_PQ", "IvfHnswPq", ["HNSW_PQ"], (index, fields, distance, partitions) => {
    const { numSubVectors, maxIterations, sampleRate, m, efConstruction } = fields;
    return index.hnswPq(distance, partitions, numSubVectors, maxIterations, sampleRate, m, efConstruction);
  }),
  vector("IVF_HNSW_SQ", "IvfHnswSq", ["HNSW_SQ"], (index, fields, distance, partitions) => {
    const { maxIterations, sampleRate, m, efConstruction } = fields;
    return index.hnswSq(distance, partitions, maxIterations, sampleRate, m, efConstruction);
  }),
];

/**
 * Kinds that Lance has but the engine's Node API cannot build, each with the engine's name in lists where there is one.
 */
const OUT_OF_REACH: readonly (readonly [name: string, listed?: string])[] = [
  ["RTREE"],
  ["IVF_SQ", "IvfSq"],
  ["IVF_HNSW_FLAT", "IvfHnswFlat"],
  ["HNSW_FLAT"],
];

/** Removes what makes no difference in names: case, underscores, hyphens and spaces. */
const plain = (name: string) => name.toUpperCase().replaceAll(/[-_\s]/g, "");

const BY_NAME = new Map(
  KINDS.flatMap((kind) => [kind.name, ...kind.aliases].map((name) => [plain(name), kind] as const)),
);
const LISTED = new Map<string | undefined, string>([
  ...KINDS.map(({ name, listed }) => [listed, name] as const),
  ...OUT_OF_REACH.map(([name, listed]) => [listed, name] as const),
]);

/**
 * Returns the kind that a request names.
 *
 * @throws LanceError Unsupported for kinds that the engine's Node API cannot build, InvalidInput for unknown names
 */
export function indexKind(type: string): IndexKind {
  const kind = BY_NAME.get(plain(type));
  if (kind !== undefined) return kind;
  if (OUT_OF_REACH.some(([name]) => plain(name) === plain(type))) {
    throw new LanceError("Unsupported", `the engine's Node API cannot build indices of the type ${type}`);
  }
  const known = KINDS.map(({ name }) => name).join(", ");
  throw new LanceError("InvalidInput", `index_type ${JSON.stringify(type)} is none of ${known}`);
}

/** Returns the name of a kind in answers for the engine's name in lists. */
export function indexTypeName(listed: string): string {
  return LISTED.get(listed) ?? listed;
}

/** Bounds of the numeric parameters. Beyond them the engine fails without a message or takes all memory. */
const BOUNDS: readonly (readonly [field: keyof IndexFields, name: string, least: number, most: number])[] = [
  ["numPartitions", "num_partitions", 1, 0xffff],
  ["numSubVectors", "num_sub_vectors", 1, 0xffff],
  ["numBits", "num_bits", 1, 8],
  ["sampleRate", "sample_rate", 1, 4096],
  ["maxIterations", "max_iterations", 1, 1000],
  ["targetPartitionSize", "target_partition_size", 1, 0x7fff_ffff],
  ["m", "m", 4, 256],
  ["efConstruction", "ef_construction", 1, 10_000],
  ["maxTokenLength", "max_token_length", 0, 0x7fff_ffff],
  ["minNgramLength", "min_ngram_length", 1, 32],
  ["maxNgramLength", "max_ngram_length", 1, 32],
];

/** Options of full-text indices of source code. Clients send them with their defaults, which change nothing. */
const CODE_OPTIONS: readonly (readonly [field: keyof IndexFields, name: string])[] = [
  ["lanceTokenizer", "lance_tokenizer"],
  ["splitIdentifiers", "split_identifiers"],
  ["splitOnNumerics", "split_on_numerics"],
  ["preserveOriginal", "preserve_original"],
  ["indexOperators", "index_operators"],
];

/** Languages that the engine knows. Any other name ends the process. */
const LANGUAGES =
  "Arabic Danish Dutch English Finnish French German Greek Hungarian Italian Norwegian Portuguese Romanian Russian Spanish Swedish Tamil Turkish".split(
    " ",
  );

/** Tokenizers that need no files beside the engine. */
const TOKENIZERS = ["simple", "whitespace", "raw", "ngram", "icu", "icu/split"];

/**
 * Checks the parameters of an index and normalizes the spelling of the language.
 *
 * @throws LanceError InvalidInput, Unsupported
 */
export function checkIndexFields(fields: IndexFields): IndexFields {
  for (const [field, name, least, most] of BOUNDS) {
    const value = fields[field] as number | undefined;
    if (value !== undefined && !(value >= least && value <= most)) {
      throw new LanceError("InvalidInput", `${name} must be from ${least} to ${most}, not ${value}`);
    }
  }
  for (const [field, name] of CODE_OPTIONS) {
    if (fields[field]) {
      throw new LanceError("Unsupported", `the engine's Node API builds no full-text index with ${name}`);
    }
  }
  distanceOf(fields);
  const { language, baseTokenizer } = fields;
  const known = LANGUAGES.find((name) => name.toLowerCase() === language?.toLowerCase());
  if (language !== undefined && known === undefined) throw noneOf("language", language, LANGUAGES);
  if (baseTokenizer !== undefined && !TOKENIZERS.includes(baseTokenizer)) {
    throw new LanceError(
      "InvalidInput",
      `unknown base tokenizer ${baseTokenizer}; base_tokenizer is none of ${TOKENIZERS.join(", ")}`,
    );
  }
  return { ...fields, ...(known !== undefined && { language: known }) };
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
    throw new LanceError("InvalidInput", `an index of the type ${kind.name} needs a column of plain values`);
  }
  if (!kind.vector || distanceOf(fields) !== "hamming") return;
  const [item] = field.children;
  if (item?.type.name === "int" && item.type.bits === 8) return;
  throw new LanceError("InvalidInput", "the distance hamming is for vectors of 8-bit integers");
}

function distanceOf({ distanceType }: IndexFields): string | undefined {
  return distanceType ? distanceName(distanceType) : undefined;
}

function noneOf(name: string, value: string, known: readonly string[]): LanceError {
  return new LanceError("InvalidInput", `${name} ${JSON.stringify(value)} is none of ${known.join(", ")}`);
}
