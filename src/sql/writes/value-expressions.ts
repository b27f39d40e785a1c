import type { Data, Vector } from "apache-arrow";
import type { ArrowField } from "../../arrow/schema.ts";
import { type ColumnNamed, columnIn } from "../tree/filters.ts";
import { literalOf } from "../tree/literals.ts";
import type { TreeNode } from "../tree/tree.ts";

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/** Returns an expression for the name of another one's type. */
export function typeOf(expression: TreeNode): TreeNode {
  return {
    ...{ class: "FUNCTION", type: "FUNCTION", alias: "", query_location: -1 },
    ...{ function_name: "typeof", schema: "", catalog: "", children: [expression] },
    ...{ filter: null, order_bys: { type: "ORDER_MODIFIER", orders: [] } },
    ...{ distinct: false, is_operator: false, export_state: false },
  };
}

/**
 * Returns the values of a result with a single row as constants of a tree, each from a column for the value and one for the name of its type.
 *
 * @param messages of the result, without its end
 * @param count of the values
 * @returns undefined for a result with other rows, and in place of a value whose type has no constants
 */
export async function constantsOf(
  messages: Uint8Array,
  count: number,
): Promise<readonly (TreeNode | undefined)[] | undefined> {
  const arrow = await import("apache-arrow");
  const { batches } = arrow.tableFromIPC(messages);
  const [row, ...others] = batches.filter(({ numRows }) => numRows > 0);
  if (row === undefined || others.length > 0 || row.numRows !== 1) return undefined;
  const columnAt = (at: number) => row.getChildAt(at) as Vector;
  return Array.from({ length: count }, (_, i) =>
    constantOf(columnAt(2 * i), String(columnAt(2 * i + 1).get(0))),
  );
}

const INTEGERS = /^U?(?:TINYINT|SMALLINT|INTEGER|BIGINT)$/;

function constantOf(vector: Vector, type: string): TreeNode | undefined {
  const value: unknown = vector.get(0);
  if (value === null) return constant("NULL", undefined);
  if (INTEGERS.test(type)) return constant("BIGINT", rawJSON(String(value)));
  if (type.startsWith("DECIMAL")) {
    const scale = Number(/,\s*(\d+)\)$/.exec(type)?.[1] ?? 0);
    return constant("DECIMAL", rawJSON(String(wide(vector))), scale);
  }
  switch (type) {
    case "BOOLEAN":
      return constant(type, value === true ? "t" : "f");
    case "VARCHAR":
    case "DOUBLE":
    case "FLOAT":
      return constant(type, value);
    case "DATE":
      return constant(type, new Date(Number(value)).toISOString().slice(0, 10));
    case "TIMESTAMP":
      return constant(type, timeText(words(vector).getBigInt64(0, true)));
    default:
      return undefined;
  }
}

/** Returns a constant as DuckDB's trees have it. */
function constant(id: string, value: unknown, scale?: number): TreeNode {
  const type = { id, type_info: scale === undefined ? null : { scale } };
  const held = value === undefined ? { type, is_null: true } : { type, is_null: false, value };
  return { class: "CONSTANT", type: "VALUE_CONSTANT", alias: "", query_location: -1, value: held };
}

function words(vector: Vector): DataView {
  const { buffer, byteOffset, byteLength } = (vector.data[0] as Data).values as Uint8Array;
  return new DataView(buffer, byteOffset, byteLength);
}

function wide(vector: Vector): bigint {
  const view = words(vector);
  return (view.getBigInt64(8, true) << 64n) | view.getBigUint64(0, true);
}

function timeText(micros: bigint): string {
  const millis = micros >= 0n ? micros / 1000n : -((-micros + 999n) / 1000n);
  const rest = String(micros - millis * 1000n).padStart(3, "0");
  return `${new Date(Number(millis)).toISOString().replace("T", " ").replace("Z", "")}${rest}`;
}

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
