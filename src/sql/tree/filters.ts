import type { ArrowField } from "../../arrow/schema.ts";
import { LanceError } from "../../namespace/errors.ts";
import { literalOf } from "./literals.ts";
import { positionOf, type TreeNode } from "./tree.ts";

/** Returns the column of the table that a name means; undefined for a name that means something else. */
export type ColumnNamed = (names: readonly string[]) => ArrowField | undefined;

/** Longest filter, in characters; deepest one; and longest list of values. */
const MAX_LENGTH = 16 * 1024;
const MAX_DEPTH = 16;
const MAX_VALUES = 1_000;

/**
 * Returns a condition that holds for the same rows as that of a statement, in the language of QueryTable.
 *
 * @param limits says which conditions translate, for the error
 * @throws LanceError Unsupported for a part that does not translate, with its position
 */
export function exactFilterOf(condition: TreeNode, columnNamed: ColumnNamed, limits: string): string {
  const filter = translate(condition, columnNamed, 0, true);
  if (filter !== undefined && filter.length <= MAX_LENGTH) return filter;
  throw new LanceError("Unsupported", `${limits}${positionOf(untranslated(condition, columnNamed))}`);
}

/** Returns the first part of a condition that does not translate. */
function untranslated(node: TreeNode, columnNamed: ColumnNamed): TreeNode {
  const parts = JOINING.has(node["type"]) ? (node["children"] as readonly TreeNode[]) : [];
  const part = parts.find((child) => translate(child, columnNamed, 1, true) === undefined);
  return part === undefined ? node : untranslated(part, columnNamed);
}

const JOINING: ReadonlySet<unknown> = new Set(["CONJUNCTION_AND", "CONJUNCTION_OR", "OPERATOR_NOT"]);

/**
 * Returns a filter of QueryTable that keeps every row for which all conditions hold, and possibly others; undefined if there is nothing to leave out.
 *
 * Only conditions that compare a column with constants become a part of it, and only for types whose values both languages compare in the same way. A
 * part that does not translate is left out where that keeps more rows: of AND, never of OR.
 */
export function filterOf(conditions: readonly TreeNode[], columnNamed: ColumnNamed): string | undefined {
  const parts: string[] = [];
  let length = 0;
  for (const condition of conditions) {
    const part = translate(condition, columnNamed, 0, false);
    if (part === undefined || length + part.length > MAX_LENGTH) continue;
    length += part.length;
    parts.push(part);
  }
  return parts.length === 0 ? undefined : parts.join(" AND ");
}

/** @param isExact whether the filter must leave out every other row */
function translate(
  node: TreeNode,
  columnNamed: ColumnNamed,
  depth: number,
  isExact: boolean,
): string | undefined {
  if (depth > MAX_DEPTH) return undefined;
  const children = () => node["children"] as readonly TreeNode[];
  const each = () => children().map((child) => translate(child, columnNamed, depth + 1, isExact));
  const all = (parts: readonly (string | undefined)[]) =>
    isExact && parts.includes(undefined)
      ? undefined
      : joined(
          parts.filter((part) => part !== undefined),
          "AND",
        );
  switch (node["type"]) {
    case "CONJUNCTION_AND":
      return all(each());
    case "CONJUNCTION_OR": {
      const parts = each();
      return parts.includes(undefined) ? undefined : joined(parts as string[], "OR");
    }
    case "COMPARE_EQUAL":
    case "COMPARE_NOTEQUAL":
    case "COMPARE_LESSTHAN":
    case "COMPARE_LESSTHANOREQUALTO":
    case "COMPARE_GREATERTHAN":
    case "COMPARE_GREATERTHANOREQUALTO":
      return translateComparison(node, columnNamed);
    case "COMPARE_BETWEEN": {
      const { input, lower, upper } = node as Record<string, TreeNode>;
      const from = compared(input, ">=", lower, columnNamed);
      const to = compared(input, "<=", upper, columnNamed);
      return all([from, to]);
    }
    case "COMPARE_IN":
    case "COMPARE_NOT_IN":
      return translateIn(children(), node["type"] === "COMPARE_IN", columnNamed);
    case "OPERATOR_IS_NULL":
    case "OPERATOR_IS_NOT_NULL": {
      const column = columnIn(children()[0], columnNamed);
      if (column === undefined) return undefined;
      return `${column.text} IS ${node["type"] === "OPERATOR_IS_NULL" ? "" : "NOT "}NULL`;
    }
    case "FUNCTION":
      return translateLike(node, columnNamed);
    case "COLUMN_REF":
      return translateFlag(node, true, columnNamed);
    case "OPERATOR_NOT": {
      const flag = translateFlag(children()[0], false, columnNamed);
      if (flag !== undefined || !isExact) return flag;
      const [negated] = each();
      return negated === undefined ? undefined : `(NOT ${negated})`;
    }
    case "VALUE_CONSTANT":
      return isExact ? truth(node) : undefined;
    default:
      return undefined;
  }
}

function joined(parts: readonly string[], word: "AND" | "OR"): string | undefined {
  return parts.length === 0 ? undefined : parts.length === 1 ? parts[0] : `(${parts.join(` ${word} `)})`;
}

const OPERATORS: Readonly<Record<string, Operator>> = {
  COMPARE_EQUAL: "=",
  COMPARE_NOTEQUAL: "<>",
  COMPARE_LESSTHAN: "<",
  COMPARE_LESSTHANOREQUALTO: "<=",
  COMPARE_GREATERTHAN: ">",
  COMPARE_GREATERTHANOREQUALTO: ">=",
};
type Operator = "=" | "<>" | "<" | "<=" | ">" | ">=";
const MIRRORED = { "=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=" } as const;

function translateComparison(node: TreeNode, columnNamed: ColumnNamed): string | undefined {
  const { left, right } = node as Record<string, TreeNode>;
  const operator = OPERATORS[node["type"] as string] as Operator;
  return (
    compared(left, operator, right, columnNamed) ?? compared(right, MIRRORED[operator], left, columnNamed)
  );
}

/** A column in a condition. */
interface Column {
  readonly field: ArrowField;
  readonly text: string;
}

function compared(
  left: TreeNode | undefined,
  operator: Operator,
  right: TreeNode | undefined,
  columnNamed: ColumnNamed,
): string | undefined {
  const column = columnIn(left, columnNamed);
  const value = column && literalOf(right, column.field);
  if (column === undefined || value === undefined) return undefined;
  return column.field.type.name === "float"
    ? comparedFloat(column.text, operator, value)
    : `${column.text} ${operator} ${value}`;
}

/**
 * DuckDB's zeros are equal, and its NaN is the largest number. Arrow's order has the zeros apart where it is a total one, and NaN at either end, by its
 * sign.
 */
function comparedFloat(column: string, operator: Operator, value: string): string {
  const isZero = Number(value) === 0;
  const [low, high] = isZero ? ["-0.0", "0.0"] : [value, value];
  switch (operator) {
    case "=":
      return isZero ? `(${column} >= -0.0 AND ${column} <= 0.0)` : `${column} = ${value}`;
    case "<=":
      return `(${column} <= ${high} AND NOT isnan(${column}))`;
    case "<":
      return `(${column} < ${low} AND NOT isnan(${column}))`;
    case ">":
      return `(${column} > ${high} OR isnan(${column}))`;
    case ">=":
      return `(${column} >= ${low} OR isnan(${column}))`;
    case "<>": {
      const differs = isZero ? `${column} < -0.0 OR ${column} > 0.0` : `${column} <> ${value}`;
      return `(${differs} OR isnan(${column}))`;
    }
  }
}

function translateIn(
  [first, ...values]: readonly TreeNode[],
  isIn: boolean,
  columnNamed: ColumnNamed,
): string | undefined {
  const column = columnIn(first, columnNamed);
  if (column === undefined || values.length > MAX_VALUES || column.field.type.name === "float")
    return undefined;
  const literals = values.map((value) => literalOf(value, column.field));
  if (literals.includes(undefined)) return undefined;
  return `${column.text} ${isIn ? "" : "NOT "}IN (${literals.join(", ")})`;
}

/** Translates a condition that is the same for all rows. */
function truth({ value: constant }: TreeNode): string | undefined {
  const { type, value } = constant as TreeNode;
  return (type as TreeNode)["id"] === "BOOLEAN" ? String(value === "t") : undefined;
}

function translateFlag(
  node: TreeNode | undefined,
  isTrue: boolean,
  columnNamed: ColumnNamed,
): string | undefined {
  const column = columnIn(node, columnNamed);
  return column?.field.type.name === "bool" ? `${column.text} = ${isTrue}` : undefined;
}

/** Translates LIKE and NOT LIKE. A backslash escapes in patterns of the engine, and not in those of DuckDB. */
function translateLike(node: TreeNode, columnNamed: ColumnNamed): string | undefined {
  const { function_name: name, children } = node;
  if (name !== "~~" && name !== "!~~") return undefined;
  const [first, pattern] = children as readonly TreeNode[];
  const column = columnIn(first, columnNamed);
  if (column === undefined || !TEXTS.has(column.field.type.name)) return undefined;
  const text = literalOf(pattern, column.field);
  if (text === undefined || text.includes("\\")) return undefined;
  return `${column.text} ${name === "~~" ? "" : "NOT "}LIKE ${text}`;
}

const TEXTS: ReadonlySet<string> = new Set(["utf8", "large_utf8"]);

/** Names that stand in backticks as they are. */
const NAME = /^[\p{L}_][\p{L}\p{N}_ ]*$/u;

/** Types whose columns become a part of a filter. */
const TYPES: ReadonlySet<string> = new Set([
  ...TEXTS,
  ...["bool", "int", "float", "decimal", "date", "timestamp"],
]);

/** Returns the column that an expression is; undefined for another expression, and for a column of a type that both languages may treat differently. */
export function columnIn(node: TreeNode | undefined, columnNamed: ColumnNamed): Column | undefined {
  if (node?.["class"] !== "COLUMN_REF") return undefined;
  const field = columnNamed(node["column_names"] as readonly string[]);
  if (field === undefined || !NAME.test(field.name) || !TYPES.has(field.type.name)) return undefined;
  const isPlain = field.dictionary === undefined && field.metadata["ARROW:extension:name"] === undefined;
  return isPlain ? { field, text: `\`${field.name}\`` } : undefined;
}
