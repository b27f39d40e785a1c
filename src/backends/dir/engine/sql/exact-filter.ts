import type { ArrowField } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { inSlices, type Steps } from "../../../../runtime/pace.ts";
import { exactLiteralSteps } from "./exact-literals.ts";
import { exactSumSteps } from "./exact-sums.ts";
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

/** The columns of the tables that an expression may name. */
type Fields = readonly ArrowField[];

/**
 * Returns a condition in the form in which the engine evaluates it correctly.
 *
 * @param indexTypes returns the types of the table's indices; undefined if they are not known
 * @throws LanceError InvalidInput
 */
export async function exactFilter(
  filter: string,
  fields: Fields,
  indexTypes: () => Promise<readonly (string | undefined)[] | undefined>,
): Promise<string> {
  const exact = await exactMatch(filter, fields);
  if (negatesTruth(filter)) return rowByRow(exact);
  if (!joinsNegation(filter)) return exact;
  const types = await indexTypes();
  return types?.every((type) => !EXCLUDING.has(type)) ? exact : rowByRow(exact);
}

/** Returns a condition as {@link exactFilter} does, whatever indices the table has. @throws LanceError InvalidInput */
export async function exactWithAnyIndex(filter: string, fields: Fields): Promise<string> {
  const exact = await exactMatch(filter, fields);
  return negatesTruth(filter) || joinsNegation(filter) ? rowByRow(exact) : exact;
}

/**
 * Returns the condition of a merge, which no index answers, in the form in which the engine evaluates it correctly.
 *
 * @throws LanceError InvalidInput
 */
export async function exactMatch(condition: string, fields: Fields): Promise<string> {
  return inSlices(conditionSteps(condition, fields));
}

/**
 * Returns an expression in the form in which the engine computes its value correctly.
 *
 * @throws LanceError InvalidInput
 */
export async function exactValue(expression: string, fields: Fields): Promise<string> {
  return inSlices(valueSteps(expression, fields));
}

/** Returns columns with their expressions as {@link exactValue} does. @throws LanceError InvalidInput */
export async function exactColumns(
  columns: readonly (readonly [name: string, expression: string])[],
  fields: Fields,
): Promise<[name: string, expression: string][]> {
  const exact: [string, string][] = [];
  for (const [name, expression] of columns) exact.push([name, await exactValue(expression, fields)]);
  return exact;
}

/**
 * Refuses an expression with lists that the engine keeps as it is, and computes wrongly.
 *
 * @param what names it in errors
 * @throws LanceError Unsupported; InvalidInput
 */
export async function refuseInexact(expression: string, what: string): Promise<void> {
  if ((await inSlices(apartSteps(expression, "value"))) === expression) return;
  throw new LanceError(
    "Unsupported",
    `${what} joins several conditions with IN, = or LIKE on the same value, and the engine would compute false or true where it is null; use a plain column with this expression in place of a computed one`,
  );
}

function* conditionSteps(condition: string, fields: Fields): Steps<string> {
  const literal = yield* exactLiteralSteps(condition, fields);
  return yield* apartSteps(yield* matchListSteps(literal), "condition");
}

function* valueSteps(expression: string, fields: Fields): Steps<string> {
  const sum = yield* exactSumSteps(expression, fields);
  return yield* apartSteps(yield* exactLiteralSteps(sum, fields), "value");
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
