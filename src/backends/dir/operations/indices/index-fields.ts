import type { CreateTableIndexRequest } from "../../../../gen/lance/namespace/v1/index_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
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
  | "indexType"
>;

/** Options of full-text indices that the engine's Node API does not have; clients send them with their defaults. */
export const OUT_OF_REACH_OPTIONS: readonly (readonly [
  field: keyof IndexFields,
  name: string,
  harmless?: string,
])[] = [
  ["lanceTokenizer", "lance_tokenizer"],
  ["splitIdentifiers", "split_identifiers"],
  ["splitOnNumerics", "split_on_numerics"],
  ["preserveOriginal", "preserve_original"],
  ["indexOperators", "index_operators"],
  ["documentGranularity", "document_granularity", "row"],
];

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
  ["numberOfItems", "number_of_items", 1, 1_000_000],
  ["probability", "probability", Number.MIN_VALUE, 1 - Number.EPSILON],
];

/** Languages that the engine knows. Any other name ends the process. */
const LANGUAGES =
  "Arabic Danish Dutch English Finnish French German Greek Hungarian Italian Norwegian Portuguese Romanian Russian Spanish Swedish Tamil Turkish".split(
    " ",
  );

/** Tokenizers that need no files beside the engine. */
const TOKENIZERS = ["simple", "whitespace", "raw", "ngram", "icu", "icu/split"];

/** Tokenizers with a model in the directory that `LANCE_LANGUAGE_MODEL_HOME` names; a name leads to no other directory. */
const WITH_MODEL = /^(?:jieba|(?:jieba|lindera)\/[\w-][\w.-]*)$/;

/** Maximum length of the stop words of an index, with one character more for each. The engine reads them with each search, and each list of indices has them. */
const MAX_STOP_WORDS_LENGTH = 64 * 1024;

/** The parameters that a kind of index has. */
export interface ParameterList {
  /** The name of the kind. */
  readonly name: string;
  readonly takes: readonly (keyof IndexFields)[];
}

/**
 * Checks the parameters of an index and normalizes the spelling of the language.
 *
 * @throws LanceError InvalidInput, also for a parameter that the kind does not have; Unsupported
 */
export function checkIndexFields(kind: ParameterList, fields: IndexFields): IndexFields {
  refuseOthers(kind, fields);
  for (const [field, name, least, most] of BOUNDS) {
    const value = fields[field] as number | undefined;
    if (value !== undefined && !(value >= least && value <= most)) {
      throw new LanceError("InvalidInput", `${name} must be from ${least} to ${most}, not ${value}`);
    }
  }
  for (const [field, name, harmless] of OUT_OF_REACH_OPTIONS) {
    if (fields[field] && fields[field] !== harmless) {
      throw new LanceError("Unsupported", `the engine's Node API builds no full-text index with ${name}`);
    }
  }
  distanceOf(fields);
  const { language, baseTokenizer, customStopWords } = fields;
  const stopWordsLength = customStopWords.reduce((sum, { length }) => sum + length + 1, 0);
  if (stopWordsLength > MAX_STOP_WORDS_LENGTH) {
    throw new LanceError(
      "InvalidInput",
      `custom_stop_words have ${stopWordsLength} characters; the maximum is ${MAX_STOP_WORDS_LENGTH}`,
    );
  }
  const known = LANGUAGES.find((name) => name.toLowerCase() === language?.toLowerCase());
  if (language !== undefined && known === undefined) throw noneOf("language", language, LANGUAGES);
  if (baseTokenizer !== undefined && !TOKENIZERS.includes(baseTokenizer) && !WITH_MODEL.test(baseTokenizer)) {
    throw new LanceError(
      "InvalidInput",
      `unknown base tokenizer ${baseTokenizer}; base_tokenizer is not one of ${TOKENIZERS.join(", ")}, jieba/MODEL and lindera/MODEL`,
    );
  }
  return { ...fields, ...(known !== undefined && { language: known }) };
}

/** Refuses parameters of other kinds, which would be without effect. False asks for nothing. */
function refuseOthers({ name, takes }: ParameterList, { replace: _, ...parameters }: IndexFields): void {
  for (const [field, value] of Object.entries(parameters)) {
    const isSet = Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
    if (!isSet || takes.includes(field as keyof IndexFields)) continue;
    throw new LanceError("InvalidInput", `an index of type ${name} has no parameter ${snakeCase(field)}`);
  }
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Returns the engine's name of the distance in a request. @throws LanceError InvalidInput */
export function distanceOf({ distanceType }: IndexFields): string | undefined {
  return distanceType ? distanceName(distanceType) : undefined;
}

function noneOf(name: string, value: string, known: readonly string[]): LanceError {
  return new LanceError("InvalidInput", `${name} ${JSON.stringify(value)} is not one of ${known.join(", ")}`);
}

/** Returns the number of lengths of the n-grams that an index keeps; 0 if it keeps words. */
export function ngramLengths({ baseTokenizer, minNgramLength = 3, maxNgramLength = 3 }: IndexFields): number {
  return baseTokenizer === "ngram" ? maxNgramLength - minNgramLength + 1 : 0;
}
