import type { ArrowField } from "../../../../../arrow/schema.ts";
import type { Steps } from "../../../../../runtime/pace.ts";
import { columnOf, type Span, withoutBrackets } from "../../sql/comparisons.ts";
import { type SqlToken, tokenSteps } from "../../sql/tokens.ts";

/*
 * Where a whole expression is a column and a constant, the engine converts the constant to the type of the column, and drops the bits that
 * the result has too many: `count - 1` of an unsigned 0 is the largest number. With wider operands the result is exact, and its conversion to
 * the type of the column fails.
 */

const SUM = /^[^'"]{0,1000}[-+*][^'"]{0,1000}$/;
const OPERATORS = new Set(["+", "-", "*"]);

/** A type that has all integers; a product that it does not have fails. */
const WIDE = "DECIMAL(20, 0)";

/** Returns an expression that fails where its integers overflow, in steps; the same text for any other expression. */
export function* exactSumSteps(text: string, fields: readonly ArrowField[]): Steps<string> {
  if (!SUM.test(text)) return text;
  const tokens = yield* tokenSteps(text);
  const all = withoutBrackets(tokens, [0, tokens.length]);
  for (const [at, { text: operator }] of tokens.entries()) {
    if (!OPERATORS.has(operator)) continue;
    const [left, right] = [[all[0], at] as const, [at + 1, all[1]] as const];
    const column = columnOf(tokens, left, fields) ?? columnOf(tokens, right, fields);
    const constant = columnOf(tokens, left, fields) === undefined ? left : right;
    if (column?.type.name !== "int" || !isInteger(tokens, constant)) continue;
    const { bits, signed } = column.type;
    const [a, b] = [left, right].map((span) => `CAST(${textOf(text, tokens, span)} AS ${WIDE})`);
    return `arrow_cast(${a} ${operator} ${b}, '${signed ? "Int" : "UInt"}${bits}')`;
  }
  return text;
}

function isInteger(tokens: readonly SqlToken[], span: Span): boolean {
  const [from, to] = withoutBrackets(tokens, span);
  const isNegative = tokens[from]?.text === "-";
  const number = tokens[to - 1];
  return number?.kind === "number" && /^\d{1,20}$/.test(number.text) && to - from === (isNegative ? 2 : 1);
}

function textOf(text: string, tokens: readonly SqlToken[], [from, to]: Span): string {
  return text.slice(tokens[from]?.start, tokens[to - 1]?.end);
}
