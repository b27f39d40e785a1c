import type { ArrowField } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { inSlices, type Steps } from "../../../../runtime/pace.ts";
import { exactLiteralSteps } from "../workarounds/converted-constants/exact-literals.ts";
import { apartSteps } from "../workarounds/joined-lists/in-lists.ts";
import { matchListSteps } from "../workarounds/match-lists/match-lists.ts";
import { soundWithIndices } from "../workarounds/negated-indices/sound-with-indices.ts";
import { exactSumSteps } from "../workarounds/wrapped-sums/exact-sums.ts";

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
  return soundWithIndices(await exactMatch(filter, fields), filter, indexTypes);
}

/** Returns a condition as {@link exactFilter} does, whatever indices the table has. @throws LanceError InvalidInput */
export async function exactWithAnyIndex(filter: string, fields: Fields): Promise<string> {
  return soundWithIndices(await exactMatch(filter, fields), filter, async () => undefined);
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
