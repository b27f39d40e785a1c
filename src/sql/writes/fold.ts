import { ROW_FUNCTIONS } from "../tree/functions.ts";
import type { TreeNode } from "../tree/tree.ts";

/** Kinds of expressions whose value depends on a row, or on more than one. */
const ROW_BOUND: ReadonlySet<unknown> = new Set([
  ...["COLUMN_REF", "DEFAULT", "LAMBDA", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "WINDOW"],
]);

/** Whether an expression has one value for a whole statement. */
export function isConstant(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  const { class: kind, function_name: name } = value as TreeNode;
  if (ROW_BOUND.has(kind)) return false;
  if (name !== undefined && ROW_FUNCTIONS.has(String(name).toLowerCase())) return false;
  return Object.values(value).every(isConstant);
}

/** Returns the largest parts of a condition that have one value, apart from constants. */
export function constantParts(node: unknown): TreeNode[] {
  if (typeof node !== "object" || node === null) return [];
  const { class: kind } = node as TreeNode;
  if (kind === "CONSTANT") return [];
  if (kind !== undefined && isConstant(node)) return [node as TreeNode];
  return Object.values(node).flatMap(constantParts);
}

/** Returns an expression with values in place of parts of it. */
export function substitute<T>(node: T, values: ReadonlyMap<unknown, TreeNode>): T {
  if (typeof node !== "object" || node === null || Object.getPrototypeOf(node) === null) return node;
  const value = values.get(node);
  if (value !== undefined) return value as T;
  if (Array.isArray(node)) return node.map((item) => substitute(item, values)) as T;
  return Object.fromEntries(
    Object.entries(node).map(([key, child]) => [key, substitute(child, values)]),
  ) as T;
}
