import { ITEMS_PER_STEP, type Steps } from "../../../../../runtime/pace.ts";
import { type SqlEdit, type SqlTree, withoutBrackets } from "../../sql/tree.ts";

/*
 * The engine takes `regexp_match` in a condition for true where it finds something and for false elsewhere, also as the operand of IS NULL,
 * although the function returns a list, or null. `regexp_match(a, 'x') IS NOT NULL` becomes true for each row. It looks at the name of the
 * function, so that `coalesce` of a single value, which is that value, keeps the list.
 */

const MATCH = /regexp_match/i;

/** Returns the changes of a condition after which IS NULL sees the list that a match returns, in steps. */
export function* matchListSteps({ nodes, text }: SqlTree): Steps<SqlEdit[]> {
  const edits: SqlEdit[] = [];
  if (!MATCH.test(text)) return edits;
  for (const [index, node] of nodes.entries()) {
    if (index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
    if (node.kind !== "operation" || node.operator !== "is") continue;
    const [checked, test] = node.operands;
    if (checked === undefined || test?.kind !== "word" || test.word !== "null") continue;
    const match = withoutBrackets(checked);
    if (match.kind !== "bracket" || match.name?.word !== "regexp_match") continue;
    const { start, end } = match;
    // Two insertions, because the arguments may have changes of their own.
    edits.push({ start, end: start, text: "coalesce(" }, { start: end, end, text: ")" });
  }
  return edits;
}
