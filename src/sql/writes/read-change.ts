import { LanceError } from "../../namespace/errors.ts";
import { positionOf, type TreeNode } from "../tree/tree.ts";

/** What UPDATE or DELETE says about rows, as parts of a tree. */
export interface Change {
  /** Values by the columns that get them; empty for DELETE. */
  readonly assignments: readonly { readonly column: TreeNode; readonly value: TreeNode }[];
  /** Default: all rows are changed. */
  readonly condition: TreeNode | undefined;
}

/** Parts of a query that a change has not. */
const ABSENT = ["having", "sample", "qualify"];
const EMPTY = ["modifiers", "group_expressions", "group_sets"];

/**
 * Reads a change from the tree of its query, which selects assignments as comparisons.
 *
 * @throws LanceError Unsupported for other parts of a query, InvalidInput for what is no assignment
 */
export function readChange({ node }: TreeNode, kind: "update" | "delete"): Change {
  const query = node as TreeNode;
  const { type, from_table: source, cte_map: ctes, select_list: list, where_clause: condition } = query;
  const isPlain =
    type === "SELECT_NODE" &&
    ABSENT.every((part) => query[part] === null) &&
    EMPTY.every((part) => (query[part] as readonly unknown[]).length === 0) &&
    (ctes as { readonly map: readonly unknown[] }).map.length === 0 &&
    query["aggregate_handling"] === "STANDARD_HANDLING";
  if (!isPlain) throw new LanceError("Unsupported", `${kind.toUpperCase()} has a condition alone: WHERE`);
  if ((source as TreeNode)["type"] !== "EMPTY")
    throw new LanceError(
      "Unsupported",
      `${kind.toUpperCase()} reads no other table${positionOf(source as TreeNode)}`,
    );
  const [only, ...others] = list as readonly TreeNode[];
  // What follows the table is a condition or nothing.
  if (kind === "delete" && (only?.["class"] !== "CONSTANT" || only["alias"] !== "" || others.length > 0))
    throw new LanceError("InvalidInput", "DELETE has no WHERE behind its table, but something else");
  return {
    assignments: kind === "delete" ? [] : (list as readonly TreeNode[]).map(readAssignment),
    condition: condition === null ? undefined : (condition as TreeNode),
  };
}

function readAssignment(node: TreeNode): Change["assignments"][number] {
  const { type, alias, left, right } = node;
  const column = left as TreeNode | undefined;
  if (type === "COMPARE_EQUAL" && alias === "" && column?.["class"] === "COLUMN_REF")
    return { column, value: right as TreeNode };
  throw new LanceError(
    "InvalidInput",
    `an assignment is column = value, and a value that compares is in parentheses${positionOf(node)}`,
  );
}
