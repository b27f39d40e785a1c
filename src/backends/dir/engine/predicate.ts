import { LanceError } from "../../../namespace/errors.ts";
import { checkExpression } from "./sql.ts";

/**
 * Checks that a predicate is one expression; see {@link checkExpression}.
 *
 * @returns the predicate; undefined when there is none or it is blank.
 * @throws LanceError InvalidInput
 */
export function onePredicate(predicate: string | undefined): string | undefined {
  if (!predicate?.trim()) return undefined;
  checkExpression(predicate);
  return predicate;
}

/**
 * Checks an expression that has to be there; see {@link checkExpression}.
 *
 * @param what names it in errors, for example `the expression of column "a"`
 * @throws LanceError InvalidInput
 */
export function oneExpression(expression: string, what: string): string {
  const checked = onePredicate(expression);
  if (checked === undefined) throw new LanceError("InvalidInput", `${what} is empty`);
  return checked;
}
