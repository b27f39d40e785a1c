import type { ArrowField } from "../../arrow/schema.ts";
import { type ColumnNamed, columnIn } from "../tree/filters.ts";
import { literalOf } from "../tree/literals.ts";
import type { TreeNode } from "../tree/tree.ts";

/** Operators on numbers that both languages compute alike, up to the range of the column, beyond which both fail. */
const ARITHMETIC: ReadonlySet<unknown> = new Set(["+", "-", "*"]);

/**
 * Returns the expression of UpdateTable that has the same value as one of a statement; undefined if it may differ.
 *
 * @param field the column that gets the value
 */
export function expressionOf(
  node: TreeNode,
  field: ArrowField,
  columnNamed: ColumnNamed,
): string | undefined {
  if (node["class"] === "CONSTANT") {
    const { is_null: isNull } = node["value"] as TreeNode;
    return isNull === true ? "NULL" : literalOf(node, field);
  }
  const column = columnIn(node, columnNamed);
  if (column !== undefined) return isSameType(column.field, field) ? column.text : undefined;
  const { function_name: name, is_operator: isOperator, children } = node;
  if (node["class"] !== "FUNCTION" || isOperator !== true) return undefined;
  const operands = children as readonly TreeNode[];
  if (operands.length !== 2) return undefined;
  const texts = operands.map((operand) => operandOf(operand, String(name), field, columnNamed));
  return texts.includes(undefined) ? undefined : `(${texts.join(` ${name} `)})`;
}

function operandOf(
  node: TreeNode,
  operator: string,
  field: ArrowField,
  columnNamed: ColumnNamed,
): string | undefined {
  const { type } = field;
  if (operator === "||" && type.name === "utf8") return expressionOf(node, field, columnNamed);
  if (!ARITHMETIC.has(operator) || (type.name !== "int" && type.name !== "float")) return undefined;
  const column = columnIn(node, columnNamed);
  if (column !== undefined) {
    if (!isSameType(column.field, field)) return undefined;
    // The engine's numbers of 64 bits and less would begin again past their range; these fail there.
    return type.name === "int" ? `cast(${column.text} as decimal(38, 0))` : column.text;
  }
  // A constant of a narrower type would make the operation one of that type in one language, and not in the other.
  if (type.name === "float" && type.bits !== 64) return undefined;
  const isValue = node["class"] === "CONSTANT" && (node["value"] as TreeNode)["is_null"] !== true;
  return isValue ? literalOf(node, field) : undefined;
}

function isSameType(one: ArrowField, other: ArrowField): boolean {
  return JSON.stringify(one.type) === JSON.stringify(other.type);
}
