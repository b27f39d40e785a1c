import type { ArrowField } from "../../../../../arrow/schema.ts";
import { columnOf } from "../../sql/comparisons.ts";
import { isOperation, pathOf, type SqlNode, type SqlTree, withoutBrackets } from "../../sql/tree.ts";

/*
 * Where a whole expression is a column and a constant, the engine converts the constant to the type of the column, and drops the bits that
 * the result has too many: `count - 1` of an unsigned 0 is the largest number. With wider operands the result is exact, and its conversion to
 * the type of the column fails.
 */

const OPERATORS = new Set(["+", "-", "*"]);

/** A type that has all integers; a product that it does not have fails. */
const WIDE = "DECIMAL(20, 0)";

/** Returns the expression that fails where the integers of an expression overflow; undefined for one that needs no other. */
export function exactSum({ root, text }: SqlTree, fields: readonly ArrowField[]): string | undefined {
  const sum = withoutBrackets(root);
  if (!isOperation(sum, OPERATORS) || sum.operands.length !== 2) return undefined;
  const [left, right] = sum.operands as readonly [SqlNode, SqlNode];
  const first = wordedColumn(left, fields);
  const column = first ?? wordedColumn(right, fields);
  if (column?.type.name !== "int" || !isInteger(first === undefined ? left : right)) return undefined;
  const { bits, signed } = column.type;
  const [a, b] = [left, right].map(({ start, end }) => `CAST(${text.slice(start, end)} AS ${WIDE})`);
  return `arrow_cast(${a} ${sum.operator} ${b}, '${signed ? "Int" : "UInt"}${bits}')`;
}

/** Returns the column that an operand is. In double quotes, it is a text to the engine here. */
function wordedColumn(operand: SqlNode, fields: readonly ArrowField[]): ArrowField | undefined {
  const node = withoutBrackets(operand);
  const isQuoted = pathOf(node)?.some(({ text }) => text.startsWith('"')) === true;
  return isQuoted ? undefined : columnOf(node, fields);
}

function isInteger(operand: SqlNode): boolean {
  let number: SqlNode | undefined = withoutBrackets(operand);
  if (number.kind === "operation" && number.operator === "-" && number.operands.length === 1)
    [number] = number.operands;
  return number?.kind === "number" && /^\d{1,20}$/.test(number.text);
}
