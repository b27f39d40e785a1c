import { LanceError } from "../../../namespace/errors.ts";
import { checkExpression } from "./sql.ts";
import { MAX_VALUE_LENGTH } from "./sql-functions.ts";

/**
 * Checks that a predicate is one expression that the engine can bear; see {@link checkExpression}.
 *
 * @returns the predicate; undefined when there is none or it is blank.
 * @throws LanceError InvalidInput
 */
export function onePredicate(predicate: string | undefined): string | undefined {
  if (!predicate?.trim()) return undefined;
  checkExpression(predicate);
  return predicate;
}

/** An expression, and what it is in errors, for example `the expression of column "a"`. */
export type NamedExpression = readonly [expression: string, what: string];

/** The most characters that the expressions of one request may have. */
export const MAX_EXPRESSIONS_LENGTH = 1024 * 1024;

/**
 * Checks the expressions whose values a request asks for, each of which has to be there.
 *
 * @param most the characters that they may have together. Default: {@link MAX_VALUE_LENGTH}, since each may become
 * part of every row that is worked on at a time.
 * @throws LanceError InvalidInput
 */
export function checkExpressions(
  expressions: readonly NamedExpression[],
  most: number = MAX_VALUE_LENGTH,
): void {
  const length = lengthOf(expressions.map(([expression]) => expression));
  if (length > most) {
    throw new LanceError("InvalidInput", `the expressions have ${length} characters, and may have ${most}`);
  }
  for (const [expression, what] of expressions) {
    if (onePredicate(expression) === undefined) throw new LanceError("InvalidInput", `${what} is empty`);
  }
}

/** The characters of all texts. */
export function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}
