import type { Steps } from "../../../../../runtime/pace.ts";
import { closingsOf, wordOf } from "../../sql/conditions.ts";
import { type SqlToken, tokenSteps } from "../../sql/tokens.ts";

/*
 * The engine takes `regexp_match` in a condition for true where it finds something and for false elsewhere, also as the operand of IS NULL,
 * although the function returns a list, or null. `regexp_match(a, 'x') IS NOT NULL` becomes true for each row. It looks at the name of the
 * function, so that `coalesce` of a single value, which is that value, keeps the list.
 */

const MATCH = /\bregexp_match\s*\(/i;
const NULL_CHECK = /\bis\s+(?:not\s+)?null\b/i;

/** Returns a condition in which IS NULL sees the list that a match returns, in steps; the same text without such a check. */
export function* matchListSteps(text: string): Steps<string> {
  if (!MATCH.test(text) || !NULL_CHECK.test(text)) return text;
  const tokens = yield* tokenSteps(text);
  const closings = closingsOf(tokens);
  let [lists, done] = ["", 0];
  for (const [at, { start }] of tokens.entries()) {
    if (wordOf(tokens[at]) !== "regexp_match" || tokens[at + 1]?.text !== "(") continue;
    const last = closings.get(at + 1) as number;
    if (!isCheckedForNull(tokens, at, last)) continue;
    const { end } = tokens[last] as SqlToken;
    lists += `${text.slice(done, start)}coalesce(${text.slice(start, end)})`;
    done = end;
  }
  return lists + text.slice(done);
}

/** Whether IS follows some tokens, or the brackets around them. */
function isCheckedForNull(tokens: readonly SqlToken[], first: number, last: number): boolean {
  let outside = 1;
  while (tokens[first - outside]?.text === "(" && tokens[last + outside]?.text === ")") outside++;
  return wordOf(tokens[last + outside]) === "is";
}
