import type { ArrowField } from "../../../../arrow/schema.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { inSlices, type Steps } from "../../../../runtime/pace.ts";
import { exactLiteralSteps } from "../workarounds/converted-constants/exact-literals.ts";
import { apartSteps } from "../workarounds/joined-lists/in-lists.ts";
import { matchListSteps } from "../workarounds/match-lists/match-lists.ts";
import { soundWithIndices } from "../workarounds/negated-indices/sound-with-indices.ts";
import { exactSum } from "../workarounds/wrapped-sums/exact-sums.ts";
import { expressionCheck } from "./predicate.ts";
import { printSql, readToEnd, type SqlEdit, type SqlTree } from "./tree.ts";
import { treeSteps } from "./trees.ts";

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
  const { tree, exact } = await inSlices(conditionSteps(filter, fields));
  return soundWithIndices(exact, tree, indexTypes);
}

/** Returns a condition as {@link exactFilter} does, whatever indices the table has. @throws LanceError InvalidInput */
export async function exactWithAnyIndex(filter: string, fields: Fields): Promise<string> {
  return exactFilter(filter, fields, async () => undefined);
}

/**
 * Returns the condition of a merge, which no index answers, in the form in which the engine evaluates it correctly.
 *
 * @throws LanceError InvalidInput
 */
export async function exactMatch(condition: string, fields: Fields): Promise<string> {
  return (await inSlices(conditionSteps(condition, fields))).exact;
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
  const tree = await inSlices(treeSteps(expression));
  if ((await inSlices(apartSteps(tree, "value"))).length === 0) return;
  throw new LanceError(
    "Unsupported",
    `${what} joins several conditions with IN, = or LIKE on the same value, and the engine would compute false or true where it is null; use a plain column with this expression in place of a computed one`,
  );
}

function* conditionSteps(condition: string, fields: Fields): Steps<{ tree: SqlTree; exact: string }> {
  const tree = yield* treeSteps(condition);
  const literals = yield* exactLiteralSteps(tree, fields);
  const matches = yield* matchListSteps(tree);
  const separators = yield* apartSteps(tree, "condition");
  return { tree, exact: yield* printSteps(tree, [...literals, ...matches], separators) };
}

function* valueSteps(expression: string, fields: Fields): Steps<string> {
  if (isColumn(expression, fields)) return expression;
  const tree = yield* treeSteps(expression);
  const sum = exactSum(tree, fields);
  if (sum !== undefined) return sum;
  const literals = yield* exactLiteralSteps(tree, fields);
  return yield* printSteps(tree, literals, yield* apartSteps(tree, "value"));
}

/** Returns an expression with its changes, in steps. With separators, it must hold the bounds again. */
function* printSteps(
  { text, hasGaps }: SqlTree,
  edits: readonly SqlEdit[],
  separators: readonly SqlEdit[],
): Steps<string> {
  const printed = printSql(text, [...separators, ...edits]);
  if (separators.length > 0) yield* expressionCheck(printed);
  return hasGaps ? readToEnd(printed) : printed;
}

/** Whether a value is the name of a column, as which the engine takes the whole text first: `my col`, or `a-1`. */
function isColumn(expression: string, fields: Fields): boolean {
  const name = expression.toLowerCase();
  return fields.some((field) => field.name.toLowerCase() === name);
}

/** Returns an expression that the engine keeps as it is, so that it is read to its end. */
export async function wholeExpression(expression: string, fields: Fields): Promise<string> {
  if (isColumn(expression, fields)) return expression;
  const { hasGaps } = await inSlices(treeSteps(expression));
  return hasGaps ? readToEnd(expression) : expression;
}
