import { LanceError } from "../../namespace/errors.ts";
import { COLLATIONS, FUNCTIONS, TABLE_FUNCTIONS } from "./allowed-functions.ts";
import { isSearch } from "./searches.ts";
import { isExactNumber, KEPT_SCHEMA, positionOf, SCAN_FUNCTION, type TreeNode, VIEW_PREFIX } from "./tree.ts";

/** Kinds of expressions that statements may have. */
const EXPRESSIONS: ReadonlySet<unknown> = new Set([
  "BETWEEN",
  "CASE",
  "CAST",
  "COLLATE",
  "COLUMN_REF",
  "COMPARISON",
  "CONJUNCTION",
  "CONSTANT",
  "FUNCTION",
  "LAMBDA",
  "OPERATOR",
  "PARAMETER",
  "POSITIONAL_REFERENCE",
  "STAR",
  "SUBQUERY",
  "WINDOW",
]);

/** Kinds of queries, of what stands behind FROM, and of their parts. */
const PARTS: ReadonlySet<unknown> = new Set([
  ...["SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE"],
  ...["BASE_TABLE", "EMPTY", "EXPRESSION_LIST", "JOIN", "PIVOT", "SHOW_REF", "SUBQUERY", "TABLE_FUNCTION"],
  ...["DISTINCT_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER"],
  ...["ASCENDING", "DESCENDING", "ORDER_DEFAULT"],
]);

/** Types that DuckDB knows by their names alone. */
const NAMED_TYPES: ReadonlySet<string> = new Set([
  "bit",
  "bitstring",
  "enum",
  "json",
  "uuid",
  "varint",
  "bignum",
]);

/** Deepest nesting of a statement. */
const MAX_DEPTH = 400;

/** Names of common table expressions that can be seen. */
type Scope = ReadonlySet<string>;

/** Called for each table that a statement names, and each search; returns what stands in its place. */
export type ReplaceTable = (table: TreeNode) => TreeNode;

/**
 * Checks that a statement has only what statements may have, and replaces its tables.
 *
 * @throws LanceError Unsupported for anything else, with its position
 */
export function checkTree(statement: TreeNode, replace: ReplaceTable): void {
  new Checker(replace, new Set()).visit(statement, new Set(), 0);
}

/**
 * Checks a statement whose tables are replaced by scans and kept tables.
 *
 * @param kept names of the kept tables that it may read
 * @throws LanceError Unsupported for anything else
 */
export function checkWritten(statement: TreeNode, kept: ReadonlySet<string>): void {
  new Checker(undefined, kept).visit(statement, new Set(), 0);
}

class Checker {
  readonly #replace: ReplaceTable | undefined;
  readonly #kept: ReadonlySet<string>;

  /** @param replace undefined if the tables of the statement are replaced */
  constructor(replace: ReplaceTable | undefined, kept: ReadonlySet<string>) {
    this.#replace = replace;
    this.#kept = kept;
  }

  /** Checks a part, and returns what stands in its place. */
  visit(value: unknown, scope: Scope, depth: number): unknown {
    if (typeof value !== "object" || value === null || isExactNumber(value)) return value;
    if (depth > MAX_DEPTH)
      throw new LanceError("InvalidInput", `the statement is nested more than ${MAX_DEPTH} levels deep`);
    if (Array.isArray(value)) {
      for (const [i, item] of value.entries()) value[i] = this.visit(item, scope, depth + 1);
      return value;
    }
    const node = value as TreeNode;
    if ("class" in node) return this.#expression(node, scope, depth);
    if ("type_info" in node) {
      checkType(node);
      return node;
    }
    if (typeof node["type"] !== "string") return this.#children(node, scope, depth);
    if (!PARTS.has(node["type"])) throw refused(String(node["type"]), node);
    return this.#part(node, scope, depth);
  }

  #children(node: TreeNode, scope: Scope, depth: number): TreeNode {
    for (const [key, child] of Object.entries(node)) node[key] = this.visit(child, scope, depth + 1);
    return node;
  }

  #expression(node: TreeNode, scope: Scope, depth: number): TreeNode {
    if (!EXPRESSIONS.has(node["class"])) throw refused(String(node["class"]), node);
    if ("function_name" in node) checkFunction(node, FUNCTIONS);
    if (node["class"] === "COLLATE") checkCollation(node);
    return this.#children(node, scope, depth);
  }

  #part(node: TreeNode, scope: Scope, depth: number): TreeNode {
    switch (node["type"]) {
      case "BASE_TABLE":
        return this.#table(node, scope);
      case "TABLE_FUNCTION": {
        if (this.#replace !== undefined && isSearch(node)) return this.#replace(node);
        const call = node["function"] as TreeNode;
        const isScan = this.#replace === undefined && call["function_name"] === SCAN_FUNCTION;
        if (call["class"] !== "FUNCTION") throw refused("TABLE_FUNCTION", node);
        if (!isScan) checkFunction(call, TABLE_FUNCTIONS, "table function");
        this.visit(call["children"], scope, depth + 1);
        return node;
      }
      case "SHOW_REF":
        if (node["query"] === null || !["DESCRIBE", "SUMMARY"].includes(String(node["show_type"])))
          throw refused(String(node["show_type"]), node);
        return this.#children(node, scope, depth);
      case "PIVOT":
        checkPivot(node);
        return this.#children(node, scope, depth);
      default:
        return "cte_map" in node ? this.#query(node, scope, depth) : this.#children(node, scope, depth);
    }
  }

  /** Visits a query: each common table expression sees those before it, and the query sees all. */
  #query(node: TreeNode, outer: Scope, depth: number): TreeNode {
    const scope = new Set(outer);
    const { map } = node["cte_map"] as { readonly map: readonly { readonly key: string; value: TreeNode }[] };
    for (const { key, value } of map) {
      if (this.#replace !== undefined && nameKey(key).startsWith(VIEW_PREFIX))
        throw new LanceError(
          "Unsupported",
          `a common table expression with the name ${key} is not supported`,
        );
      this.visit(value, new Set(scope), depth + 1);
      scope.add(nameKey(key));
    }
    const { cte_map: _, ...rest } = node;
    for (const [key, child] of Object.entries(rest)) {
      // The second part of a recursive query sees the query itself.
      const isRecursion = node["type"] === "RECURSIVE_CTE_NODE" && key === "right";
      const seen = isRecursion ? new Set([...scope, nameKey(String(node["cte_name"]))]) : scope;
      node[key] = this.visit(child, seen, depth + 1);
    }
    return node;
  }

  #table(node: TreeNode, scope: Scope): TreeNode {
    const { catalog_name: catalog, schema_name: schema, table_name: name } = node;
    const isPlain = catalog === "" && schema === "" && node["at_clause"] === null;
    if (isPlain && scope.has(nameKey(String(name)))) return node;
    if (this.#replace !== undefined) return this.#replace(node);
    const isKept = catalog === "" && schema === KEPT_SCHEMA && node["at_clause"] === null;
    if (!isKept || !this.#kept.has(String(name))) throw refused("BASE_TABLE", node);
    return node;
  }
}

/** Names of DuckDB differ without regard to the case of ASCII letters. */
function nameKey(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function checkFunction(node: TreeNode, allowed: ReadonlySet<string>, what = "function"): void {
  const name = String(node["function_name"]);
  const [catalog, schema] = [node["catalog"], node["schema"]];
  const isOwn = (catalog === "" || catalog === undefined) && (schema === "" || schema === "main");
  if (!isOwn || !allowed.has(nameKey(name)) || node["export_state"] === true)
    throw new LanceError("Unsupported", `the ${what} ${name} is not supported${positionOf(node)}`);
}

function checkCollation(node: TreeNode): void {
  for (const name of String(node["collation"]).split("."))
    if (!COLLATIONS.has(nameKey(name)))
      throw new LanceError("Unsupported", `the collation ${name} is not supported${positionOf(node)}`);
}

function checkPivot(node: TreeNode): void {
  for (const { pivot_enum: name } of (node["pivots"] ?? []) as readonly TreeNode[])
    if (name !== "") throw refused("PIVOT by a type", node);
}

/** Checks a type, and those in it. */
function checkType(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    value.forEach(checkType);
    return;
  }
  const type = value as TreeNode;
  if (type["id"] === "UNBOUND" || type["id"] === "USER") {
    const { name, catalog, schema, collation } = (type["type_info"] ?? {}) as TreeNode;
    const isKnown = NAMED_TYPES.has(nameKey(String(name)));
    if (!isKnown || (catalog ?? "") !== "" || (schema ?? "") !== "" || (collation ?? "") !== "")
      throw new LanceError("Unsupported", `the type ${name} is not supported`);
  }
  Object.values(type).forEach(checkType);
}

const WORDS: Readonly<Record<string, string>> = {
  BASE_TABLE: "a table of DuckDB",
  SHOW_UNQUALIFIED: "SHOW",
  SHOW_FROM: "SHOW",
};

function refused(kind: string, node: TreeNode): LanceError {
  return new LanceError("Unsupported", `${WORDS[kind] ?? kind} is not supported${positionOf(node)}`);
}
