import { LanceError } from "../../namespace/errors.ts";
import { quoted } from "../column-types.ts";
import type { TreeNode } from "./tree.ts";

/** A column that a result must have: its name, and its type in SQL. */
export interface ResultColumn {
  readonly name: string;
  readonly type: string;
}

/**
 * Returns a statement that casts the columns of a query, by their positions. The query is a part of a union with a row of these types that is never
 * there, so that DuckDB refuses it if it has another number of columns.
 */
export function fittingText(columns: readonly ResultColumn[]): string {
  const nulls = nullsText(columns);
  const places = columns.map((_, i) => `"${i}"`).join(", ");
  const casts = columns.map(({ name, type }, i) => `"${i}"::${type} AS ${quoted(name)}`).join(", ");
  return `SELECT ${casts} FROM (${nulls} WHERE false UNION ALL (SELECT 1)) AS source(${places})`;
}

/** Returns a query for a row of nulls with columns. */
export function nullsText(columns: readonly ResultColumn[]): string {
  return `SELECT ${columns.map(({ name, type }) => `NULL::${type} AS ${quoted(name)}`).join(", ")}`;
}

/** @throws LanceError InvalidInput if types have made something else of {@link nullsText} */
export function requireNulls({ node }: TreeNode): void {
  const { select_list: list, from_table: source, ...others } = node as TreeNode;
  const isPlain = (source as TreeNode)["type"] === "EMPTY" && others["where_clause"] === null;
  const isCast = ({ class: kind, child }: TreeNode) =>
    kind === "CAST" && (child as TreeNode)["class"] === "CONSTANT";
  if (!isPlain || !(list as readonly TreeNode[]).every(isCast))
    throw new LanceError("InvalidInput", "the types of the new table are not types");
}

/** Puts a query into the tree of {@link fittingText}. */
export function putQuery(fitting: TreeNode, query: TreeNode): void {
  const { from_table: source } = fitting["node"] as TreeNode;
  const union = ((source as TreeNode)["subquery"] as TreeNode)["node"] as TreeNode;
  union["right"] = query["node"];
  fitting["named_param_map"] = query["named_param_map"];
}
