import { LanceError } from "../../../../namespace/errors.ts";
import { withoutBracketsAround } from "../sql/print.ts";
import { withoutSeparators } from "../workarounds/joined-lists/in-lists.ts";
import { DAMAGE, DAMAGE_BELOW_LANCE } from "./damage.ts";
import { FIRST_MEANINGS, MEANINGS, type Meaning, UNKNOWN } from "./meanings.ts";

/**
 * Returns the error that a failure of the engine represents; an unknown failure becomes Internal, with the cause.
 *
 * The message omits paths and positions in the engine's source.
 */
export function toEngineError(failure: unknown): LanceError {
  if (failure instanceof LanceError) return failure;
  const thrown = withoutSignatures(failure);
  const said = thrown instanceof Error ? thrown.message : String(thrown);
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
