import { LanceError } from "../../../namespace/errors.ts";

/** String literals and quoted names, in which anything may stand; then what ends a statement. */
const QUOTED_OR_END = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|(;)/g;

/**
 * Checks that a predicate is one expression: the engine reads to the first semicolon and ignores what follows, so
 * that `a; and more` would quietly mean `a`.
 *
 * @returns the predicate; undefined when there is none or it is blank.
 * @throws LanceError InvalidInput
 */
export function onePredicate(predicate: string | undefined): string | undefined {
  for (const [, end] of predicate?.matchAll(QUOTED_OR_END) ?? []) {
    if (end !== undefined)
      throw new LanceError("InvalidInput", "a predicate must be one expression, without a semicolon");
  }
  return predicate?.trim() ? predicate : undefined;
}
