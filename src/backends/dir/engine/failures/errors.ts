import { setTimeout as sleep } from "node:timers/promises";
import { IN_LOG, isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { NativeTable } from "../native/native.ts";
import { withoutBracketsAround } from "../sql/tree.ts";
import { withoutSeparators } from "../workarounds/joined-lists/in-lists.ts";
import { FIRST_MEANINGS, MEANINGS, type Meaning, relayedError, UNKNOWN } from "./meanings.ts";

/**
 * Returns the error that a failure of the engine represents; an unknown failure becomes Internal, with the cause.
 *
 * The message omits paths and positions in the engine's source.
 */
export function toEngineError(failure: unknown): LanceError {
  if (failure instanceof LanceError) return failure;
  const thrown = withoutSignatures(failure);
  const said = thrown instanceof Error ? thrown.message : String(thrown);
  const relayed = relayedError(said);
  if (relayed !== undefined) return relayed;
  const text = shortened(said).replace(CARRIERS, "");
  const bare = text.replace(WRAPPINGS, "");
  const [pattern, name, message] =
    find(FIRST_MEANINGS, text) ??
    find(DAMAGE_BELOW_LANCE, text) ??
    find(DAMAGE, bare) ??
    find(MEANINGS, text) ??
    UNKNOWN;
  const own = message?.replace("$1", () => summary(pattern.exec(text)?.[1] ?? ""));
  return new LanceError(name, own ?? summary(bare), { cause: thrown });
}

/** Longest text of the engine in which its meaning is looked for, in characters. */
const MAX_SEARCHED = 8 * 1024;

/**
 * Leaves out the middle of a long text. It is what a caller has sent, such as a name of a megabyte in a condition, in which some patterns
 * would search for minutes.
 */
function shortened(text: string): string {
  const half = MAX_SEARCHED / 2;
  return text.length <= MAX_SEARCHED ? text : `${text.slice(0, half)}…${text.slice(-half)}`;
}

/** Beginnings of texts that the engine's Node API and its jobs add. */
const CARRIERS = /^(?:Job failed: |Failed to [a-z ]+: (?:GenericFailure, )?|External error: )+/;

/** Beginnings of texts that the layers of the engine add. */
const WRAPPINGS =
  /^(?:lance error: |LanceDBError: |External error: |(?:Not found: )?Wrapped error: |Cloned error: |A prerequisite task failed: |[Nn]ot supported: |Unprocessable: |Invalid (?:user )?input[,:] |Runtime error: |Execution error: (?=Query timeout)|Execution error: Failed to search partitions: |LanceError\(\w+\): |Generic N\/A error: |Schema [Ee]rror: |Cleanup error: |Query Execution error: |Error applying filter expression to batch: |Arrow error: |Encountered internal error\. Please file a bug report at \S+ )+/;

function find(meanings: readonly Meaning[], text: string): Meaning | undefined {
  return meanings.find(([pattern]) => pattern.test(text));
}

/** Returns a failure whose text may go into the log: the URLs in it may be signed, and are then credentials. */
function withoutSignatures(failure: unknown): unknown {
  if (!(failure instanceof Error) || failure.message.search(SIGNATURE) < 0) return failure;
  return new Error(failure.message.replaceAll(SIGNATURE, "$1="));
}

const SIGNATURE = /\b(sig|X-Amz-Signature|X-Amz-Security-Token|X-Goog-Signature)=[^&\s"')]+/gi;

/** Whether a hybrid search failed because no vector was near enough, although words matched. */
export function hasNoNeighbours(thrown: unknown): boolean {
  return thrown instanceof Error && /expected column _distance not found in rank/.test(thrown.message);
}

/** Runs engine work and converts its failures to {@link LanceError}. */
export async function engineCall<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toEngineError(error);
  }
}

/** A position in the engine's source, in either of its forms, or the beginning of what caused a failure. */
const SOURCE_OR_CAUSE = /[,;]? (?:at |\(|location: ){0,2}[\w./\\:@-]+\.rs:\d|Caused by:|\n/;

/** Returns the first sentence of a text, without internal columns and conditions. */
function summary(bare: string): string {
  const [first = ""] = bare.split(SOURCE_OR_CAUSE);
  return withoutBracketsAround(withoutSeparators(first))
    .trimEnd()
    .replace(/, (?:(?:source|target)\.)?(?:_rowid|_rowaddr|_rowoffset|_row_\w+|__merge_\w+)/g, "")
    .slice(0, 500);
}

/**
 * Texts of the engine about files of a table that are missing or cannot be read, in the order of the crates that report
 * them: tables, manifests, data files, encodings, indices. Many of them are InvalidInput in the engine's own terms,
 * because its decoders cannot tell a damaged file from a wrong argument.
 */
const DAMAGED: readonly RegExp[] = [
  /^Encountered corrupt file |^Table '[^']*' exists but could not be loaded/,
  /^Not found: \S*\/(?:data|_deletions|_indices)\/|^Version conflict error: Attempt to use the /,
  /^failed to decode (?:Protobuf message|InvertedIndexDetails)|^Parser error: Arrow file does not/,
  /^Invalid format: |^Dataset snapshot mixes |^Protobuf UUID is malformed|^File \S+ has size 0/,
  /^Field '[^']*' \(id=-?\d+\) references parent id|^Field \S+ has a negative id|^Duplicate field id /,
  /^base_path id \d+ not found|^Dataset base path with ID \d+ not found|^row id index corrupt/,
  /^Missing (?:row id meta|positions in)|^Got too (?:few|many) (?:segments|version runs)|^Row ids must be unique/,
  /^(?:file|the file \S+) does not appear to be a lance file/i,
  /^does not have sufficient data|^file size is too small|^Io error: (?:Data corruption|failed to fill)/,
  /^(?:Generic \w+ error: )?(?:failed to fill whole buffer|Invalid range \d)|^I\/O request for file \S+ and range/,
  /^I\/O request ranges must be sorted|^Invalid read of range \S+ for fragment|^RowAddrTreeMap::from_sorted_iter called/,
  /^Global buffer \d|^File did not contain any global buffers|^request for global buffer|^Schema position \d/,
  /^Column \d+ (?:page \d+ )?(?:is missing its encoding|has \d+ buffer|buffer offset)|^Column row count overflows/,
  /^column metadata |^column index \d+ is out of bounds|^physical column \d|^schema requires \d+ physical/,
  /^Tail (?:byte range|read position)|^projection (?:supplied|references)|^projected field '/,
  /^The projection specified the column index|^cannot read field '[^']*': its children/,
  /^Invalid direct |^Indirect file encodings|^Missing \w+ encoding (?:description|location)/,
  /^Lance v2\.\d |^(?:Large miniblock|Variable packed struct|Sparse page layout|Compressed constant-page)/,
  /^there were more fields in the schema|^the column at index \d|^Due to schema we expected|^Expected a struct enc/,
  /^expected list encoding|^list encoding for field|^corrupt binary page/,
  /^(?:General compression|GeneralMiniBlock|RLE|VariablePackedStruct|OutOfLineBitpacking) /,
  /^(?:Sparse|miniblock) |^Mismatched complex all-null|^Unexpected (?:un|de)compressed |^(?:LZ4|Zstd) /,
  /^Invalid (?:constant layout|complex all-null|variable offsets|repetition level|definition level)/,
  /^Unexpected \w+ level (?:count|bit width) after|^Struct child array length|^Unrecognized blob desc/,
  /^Blob (?:field|column '[^']*' expected desc)|^Unknown blob kind/,
  /^(?:expected|EOF|key must|control character|invalid|trailing|missing field|unknown)\b.{0,200} at line \d+ column \d/,
  /^(?:ZoneMap|BloomFilter)Index: |^invalid null bitmap buffer|^stored RTree page_size|^RabitQ /,
  /^missing (?:c_table|huffman_codes|tree_topology|row_ids|doc_start_positions)|^(?:expected \d+ )?FM-Index/,
  /^FTS (?:corpus|document frequency|posting file|row address|local document|DocId|token '|partitions? )/,
  /^(?:modern FTS|impact|packed posi|packed posting|missing packed|invalid packed|invalid FTS) /,
  /^(?:doc ids|positions) must be sorted|^positions are missing|^position stream|^failed to decode positions/,
  /^invalid u(?:32|64) varint|^unexpected EOF|^compressed posting|^posting (?:freq|length meta|token id)/,
  /^(?:params|partitions|offsets) not found in|^tokens is not fst|^token \d+ maps to slot/,
  /^Failed to parse (?:(?:IVF|PQ|index|storage) metadata|partitions|params|bitmap)|^Failed to decode (?:HNSW|IVF|Row)/,
  /^Failed to deserialize (?:VectorIndexDetails|bitmap|bloom|existing)|^(?:lance:\w+|storage_metadata) not found/,
  /^HNSW (?:graph has|level-0|entry_point)|^Reading (?:PQ|SQ|Rabit)|^Codebook not found|^No partition metadata/,
  /^IVF (?:index has|prewarm|index parse|meta)|^partition (?:id|centroid) \d|^auxiliary |^legacy IVF/,
  /^(?:unknown cookie value|size is greater than supported|An element was out of order at index)/,
  /^unsupported (?:token set format|FTS format version) |^invalid posting_block_size metadata|^failed to load fst/,
  /^cannot read Range\(|^cannot read columns of differing lengths|^Unexpected inner encoding type in FSL/,
  /^Data file '[^']*' \(fragment \d+\) has \d+ field ids/,
  /^task \d+ panicked with message "(?:not implemented: Bitpacking|the offset \+ length of the sliced Buffer)/,
];

/** Texts of Arrow's readers in Lance. Without Lance before them, they are about the rows that a caller sent. */
const DAMAGED_BELOW_LANCE: readonly RegExp[] = [
  /^lance error: (?:A prerequisite task failed: )?LanceError\(Arrow\): (?:Parser error: Unable to get root as |Invalid argument error: (?:(?:First|Last|Max) offset (?:of )?\d|Invalid scalar value buffer))/,
];

/** Meanings of texts without their wrappings. */
const DAMAGE: readonly Meaning[] = DAMAGED.map(damage);

/** Meanings of whole texts. */
const DAMAGE_BELOW_LANCE: readonly Meaning[] = DAMAGED_BELOW_LANCE.map(damage);

function damage(pattern: RegExp): Meaning {
  return [pattern, "DataLoss", `a file of the table is damaged or missing; ${IN_LOG}`];
}

/** Maximum number of attempts of a change. */
const ATTEMPTS = 10;

/** Longest pause before the second attempt, in milliseconds; it grows with each further one. */
const PAUSE_MS = 20;

/**
 * Runs work of the engine that commits, and repeats it on the newest version while others commit first, as if it had
 * been called later. The engine repeats most changes itself, but neither those of columns nor indices; a background
 * compaction must not make them fail.
 *
 * @param isWanted called before each further attempt
 * @throws LanceError the errors of the engine; ConcurrentModification after the last attempt
 */
export async function repeatConflicts<T>(
  table: Pick<NativeTable, "checkoutLatest">,
  work: () => Promise<T>,
  isWanted: () => boolean,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await engineCall(work);
    } catch (error) {
      const isLost = isLanceError(error, "ConcurrentModification");
      if (!isLost || attempt === ATTEMPTS || !isWanted()) throw error;
      await sleep(Math.random() * PAUSE_MS * attempt);
      await engineCall(() => table.checkoutLatest());
    }
  }
}
