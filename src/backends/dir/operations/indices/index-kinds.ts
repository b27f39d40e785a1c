import type { ArrowField } from "../../../../arrow/schema.ts";
import type { CreateTableIndexRequest } from "../../../../gen/lance/namespace/v1/index_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { loadNative } from "../../engine/native.ts";
import type { NativeIndexMakers, NativeIndexParameters } from "../../engine/native-index.ts";
import { distanceName } from "../query/vector.ts";

/** What a request says of an index, beside where it is; plain values, which a job can keep. */
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

/** A kind of index that the engine builds. */
export interface IndexKind {
  /** The name in requests and answers. */
  readonly name: string;
  /** The engine's name in its list of indices. */
  readonly listed: string;
  /** Other names in requests. */
  readonly aliases: readonly string[];
  readonly vector: boolean;
  make(makers: NativeIndexMakers, fields: IndexFields, partitions: number | undefined): NativeIndexParameters;
}

const scalar = (
  name: string,
  listed: string,
  aliases: readonly string[],
  make: IndexKind["make"],
): IndexKind => ({ name, listed, aliases, vector: false, make });

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

/** The kinds that the engine's Node API can build. */
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

/** Kinds that Lance has and the engine's Node API does not build, with its names in lists where it lists them. */
const OUT_OF_REACH: readonly (readonly [name: string, listed?: string])[] = [
  ["NGRAM"],
  ["ZONEMAP"],
  ["BLOOMFILTER"],
  ["RTREE"],
  ["IVF_SQ", "IvfSq"],
  ["IVF_HNSW_FLAT", "IvfHnswFlat"],
  ["HNSW_FLAT"],
];

/** Upper and lower case, underscores, hyphens and spaces make no difference. */
const plain = (name: string) => name.toUpperCase().replaceAll(/[-_\s]/g, "");

const BY_NAME = new Map(
  KINDS.flatMap((kind) => [kind.name, ...kind.aliases].map((name) => [plain(name), kind] as const)),
);
const LISTED = new Map<string | undefined, string>([
  ...KINDS.map(({ name, listed }) => [listed, name] as const),
  ...OUT_OF_REACH.map(([name, listed]) => [listed, name] as const),
]);

/**
 * The kind of a request.
 *
 * @throws LanceError Unsupported for kinds that the engine cannot build from here, InvalidInput for others
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

/** The name of a kind in answers, by the engine's name in lists. */
export function indexTypeName(listed: string): string {
  return LISTED.get(listed) ?? listed;
}

/** The bounds of the parameters that are numbers; beyond them the engine fails without a word or takes all memory. */
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

/** The engine ends the process when it gets another. */
const LANGUAGES =
  "Arabic Danish Dutch English Finnish French German Greek Hungarian Italian Norwegian Portuguese Romanian Russian Spanish Swedish Tamil Turkish".split(
    " ",
  );

/** Those that need no files beside the engine. */
const TOKENIZERS = ["simple", "whitespace", "raw", "ngram", "icu", "icu/split"];

/**
 * Checks the parameters of an index; the spelling of the language is put right.
 *
 * @throws LanceError InvalidInput
 */
export function checkIndexFields(fields: IndexFields): IndexFields {
  for (const [field, name, least, most] of BOUNDS) {
    const value = fields[field] as number | undefined;
    if (value !== undefined && !(value >= least && value <= most)) {
      throw new LanceError("InvalidInput", `${name} must be from ${least} to ${most}, not ${value}`);
    }
  }
  distanceOf(fields);
  const { language, baseTokenizer } = fields;
  const known = LANGUAGES.find((name) => name.toLowerCase() === language?.toLowerCase());
  if (language !== undefined && known === undefined) throw noneOf("language", language, LANGUAGES);
  if (baseTokenizer !== undefined && !TOKENIZERS.includes(baseTokenizer)) {
    throw noneOf("base_tokenizer", baseTokenizer, TOKENIZERS);
  }
  return { ...fields, ...(known !== undefined && { language: known }) };
}

/**
 * Makes the engine's parameters.
 *
 * @param rows of the table, from which the number of partitions follows where only their size is given
 * @throws LanceError InvalidInput, when finding the centroids of the index takes unreasonably long
 */
export function indexParameters(kind: IndexKind, fields: IndexFields, rows: number): NativeIndexParameters {
  const { numPartitions, targetPartitionSize } = fields;
  const bySize = targetPartitionSize && Math.max(1, Math.round(rows / targetPartitionSize));
  const partitions = numPartitions ?? bySize;
  if (kind.vector) checkTraining(fields, partitions, rows);
  return kind.make(loadNative().Index, fields, partitions);
}

/** What the engine takes by default: rows for each centroid, passes over them, and centroids of a product quantizer. */
const DEFAULTS = { sampleRate: 256, maxIterations: 50, centroids: 256 };

/** How much longer than by default the training of an index may take: the engine does not stop it. */
const MAX_TRAINING = 4;

/** Bounds the distances that k-means computes by those of as many centroids as the square root of the rows. */
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
 * Checks what the engine does not tell about a column, or only by a crash.
 *
 * @throws LanceError InvalidInput
 */
export function checkIndexedField(kind: IndexKind, fields: IndexFields, field: ArrowField): void {
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
