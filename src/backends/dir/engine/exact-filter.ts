import { LanceError } from "../../../namespace/errors.ts";
import { atOnce, inSlices, type Steps } from "../../../runtime/pace.ts";
import { apartSteps, NEVER } from "./in-lists.ts";
import { matchListSteps } from "./match-lists.ts";

/*
 * The engine looks conditions up in indices, and computes wrong rows in two cases. When it negates a result and joins it
 * with that of a zone map or a Bloom filter, which only exclude rows, the other rows of the second one are missing:
 * `k != 1 OR s = 'a'` with a B-tree of k and a Bloom filter of s. And a negated `IS TRUE` or `IS FALSE` with an index of
 * the column lacks the rows with a null.
 *
 * It looks nothing up for a condition that is joined by OR with one that no index answers. The other one is false for each row, which the
 * optimizer does not know. Within `(…) IS TRUE`, the engine looks nothing up either, but it does not convert a number to the type of its
 * column there: no 32-bit float equals the 64-bit 0.3.
 */

const NOT = /\bnot\b/i;
const TRUTH = /\bis\s+(?:not\s+)?(?:true|false)\b/i;
const NEGATION = /\bnot\b|!=|<>|\bfalse\b/i;
const CONJUNCTION = /\b(?:and|or)\b/i;

/** Types of indices, in the words of the format, whose results only exclude rows. */
const EXCLUDING: ReadonlySet<string | undefined> = new Set([undefined, "ZoneMap", "BloomFilter"]);

/**
 * Returns a condition in the form in which the engine evaluates it correctly.
 *
 * @param indexTypes returns the types of the table's indices; undefined if they are not known
 */
export async function exactFilter(
  filter: string,
  indexTypes: () => Promise<readonly (string | undefined)[] | undefined>,
): Promise<string> {
  const apart = await inSlices(conditionSteps(filter));
  if (negatesTruth(filter)) return rowByRow(apart);
  if (!joinsNegation(filter)) return apart;
  const types = await indexTypes();
  return types?.every((type) => !EXCLUDING.has(type)) ? apart : rowByRow(apart);
}

/** Returns a condition as {@link exactFilter} does, whatever indices the table has. */
export function exactWithAnyIndex(filter: string): string {
  const apart = atOnce(conditionSteps(filter));
  return negatesTruth(filter) || joinsNegation(filter) ? rowByRow(apart) : apart;
}

/** Returns the condition of a merge, which no index answers, in the form in which the engine evaluates it correctly. */
export function exactMatch(condition: string): string {
  return atOnce(conditionSteps(condition));
}

/** Returns an expression in the form in which the engine computes its value correctly. */
export function exactValue(expression: string): string {
  return atOnce(apartSteps(expression, "value"));
}

/**
 * Refuses an expression that the engine keeps as it is, and computes wrongly.
 *
 * @param what names it in errors
 * @throws LanceError Unsupported
 */
export function refuseInexact(expression: string, what: string): void {
  if (exactValue(expression) === expression) return;
  throw new LanceError(
    "Unsupported",
    `${what} joins several conditions with IN, = or LIKE on the same value, and the engine would compute false or true where it is null; use a plain column with this expression in place of a computed one`,
  );
}

function* conditionSteps(condition: string): Steps<string> {
  return yield* apartSteps(yield* matchListSteps(condition), "condition");
}

function negatesTruth(filter: string): boolean {
  return NOT.test(filter) && TRUTH.test(filter);
}

function joinsNegation(filter: string): boolean {
  return NEGATION.test(filter) && CONJUNCTION.test(filter);
}

function rowByRow(filter: string): string {
  return `(${filter}) OR ${NEVER}`;
}
