import { LanceError } from "../../../../namespace/errors.ts";
import { atOnce, type Steps } from "../../../../runtime/pace.ts";
import { MAX_STEPS } from "./costs.ts";
import { MAX_VALUE_LENGTH } from "./functions.ts";
import { expressionCheck } from "./sql.ts";

/**
 * Checks that a predicate is a single expression that the engine can evaluate safely; see {@link expressionCheck}.
 *
 * The steps return the predicate; undefined if it is missing. They throw LanceError InvalidInput, also for a blank predicate, which must not
 * select all rows.
 */
export function* predicateSteps<T extends string | undefined>(predicate: T): Steps<T> {
  if (predicate === undefined) return predicate;
  if (isBlank(predicate))
    throw new LanceError("InvalidInput", "the condition must not be blank; `true` selects all rows");
  yield* expressionCheck(predicate);
  return predicate;
}

/** An expression, and its name in errors, for example `the expression of column "a"`. */
export type NamedExpression = readonly [expression: string, what: string];

/** Maximum length of all expressions of a request, in characters. */
export const MAX_EXPRESSIONS_LENGTH = 1024 * 1024;

/**
 * Checks the expressions whose values a request asks for; none may be missing.
 *
 * @throws LanceError InvalidInput
 */
export function checkExpressions(expressions: readonly NamedExpression[]): void {
  atOnce(expressionSteps(expressions));
}

/**
 * Returns the steps of {@link checkExpressions}, an expression each.
 *
 * @param most maximum length of all together, in characters. Default: {@link MAX_VALUE_LENGTH}, since each may become
 *   part of every row that is processed at a time.
 */
export function* expressionSteps(
  expressions: readonly NamedExpression[],
  most: number = MAX_VALUE_LENGTH,
): Steps<void> {
  const length = lengthOf(expressions.map(([expression]) => expression));
  if (length > most) {
    throw new LanceError("InvalidInput", `the expressions have ${length} characters; the maximum is ${most}`);
  }
  let steps = 0;
  for (const [expression, what] of expressions) {
    yield;
    if (isBlank(expression)) throw new LanceError("InvalidInput", `${what} is empty`);
    steps += yield* expressionCheck(expression);
    if (steps > MAX_STEPS) {
      throw new LanceError(
        "InvalidInput",
        `the calls and patterns of all expressions take more than ${MAX_STEPS} steps for each row`,
      );
    }
  }
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** Returns the length of all texts, in characters. */
export function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}
