import { LanceError } from "../../namespace/errors.ts";
import type { SqlTableName } from "../sql-engine.ts";
import { pathOf } from "../table-names.ts";
import { checkTree } from "./check.ts";
import { INTEGERS } from "./literals.ts";
import { isSearch, readSearch } from "./searches.ts";
import {
  isExactNumber,
  KEPT_SCHEMA,
  positionOf,
  readTree,
  SCAN_FUNCTION,
  type TreeNode,
  VIEW_PREFIX,
} from "./tree.ts";

/** A table that a statement names, once for each place that means the same table. */
export interface NamedTable extends SqlTableName {
  /** Name as the statement writes it, for errors. */
  readonly text: string;
}

/** Largest number of tables of a statement. */
const MAX_TABLES = 64;

/** The tables of a statement, and the places where it names them. */
export interface NamedTables {
  readonly tables: readonly NamedTable[];
  /** For each scan, in the order of their numbers: the position of its table. */
  readonly places: readonly number[];
}

/** The query of a view. */
export interface ParsedView {
  /** Its tree, as {@link readTree} reads it. */
  readonly tree: Uint8Array;
  /** Namespace of names without a schema. */
  readonly namespacePath: readonly string[];
}

/** Number of views that may read one another, one within the other. */
const MAX_VIEW_DEPTH = 16;

/** Largest number of places of a statement and of its views that name a view. */
const MAX_VIEWS = 64;

/** Largest size of the queries at these places together, in bytes of their trees. */
const MAX_VIEW_BYTES = 1024 * 1024;

/** Returns what two names of the same table have in common. */
export function tableKey({ database, path, branch, version }: SqlTableName): string {
  return JSON.stringify([database, path, branch, String(version)]);
}

/** Returns what two places have in common that read the same table or the same search. */
function placeKey(table: SqlTableName): string {
  return table.search === undefined ? tableKey(table) : `${tableKey(table)} ${JSON.stringify(table.search)}`;
}

/**
 * Checks a statement, and puts a scan in each place where it names a table. Where it names a view, it reads a common table expression with the view's
 * query, at its begin: there the query sees no columns of the statement, which a subquery would take for columns that its own tables have lost.
 *
 * @param namespacePath namespace of names without a schema
 * @param views the views among the tables, by their keys
 * @throws LanceError Unsupported, InvalidInput
 */
export function replaceTables(
  statement: TreeNode,
  namespacePath: readonly string[],
  views: ReadonlyMap<string, ParsedView>,
): NamedTables {
  const tables = new Map<string, NamedTable>();
  const numbers = new Map<string, number>();
  const places: number[] = [];
  const expressions: TreeNode[] = [];
  let [viewCount, viewBytes] = [0, 0];

  function replaceIn(tree: TreeNode, path: readonly string[], depth: number): void {
    const qualified: TreeNode[] = [];
    const inViews: (readonly [place: TreeNode, view: ParsedView])[] = [];
    checkTree(tree, (node) => {
      const table = isSearch(node) ? searchedTable(node, path) : namedTable(node, path);
      if (depth > 0 && table.database !== undefined)
        throw new LanceError("Unsupported", "the query of a view cannot name a database");
      const key = placeKey(table);
      if (isQualified(node)) qualified.push(node);
      const view = table.search === undefined ? views.get(key) : undefined;
      if (view !== undefined) {
        const place = viewNode(node);
        inViews.push([place, view]);
        return place;
      }
      const number = numbers.get(key) ?? numbers.size;
      numbers.set(key, number);
      if (numbers.size > MAX_TABLES)
        throw new LanceError("InvalidInput", `the statement names more than ${MAX_TABLES} tables`);
      tables.set(key, table);
      return scanNode(node, places.push(number) - 1);
    });
    if (qualified.length > 0) shortenColumns(tree, qualified);
    for (const [place, view] of inViews) place["table_name"] = expressionOf(view, depth + 1);
  }

  /** Adds the expression for a place of a view, behind those of the views that it reads, and returns its name. */
  function expressionOf({ tree, namespacePath: path }: ParsedView, depth: number): string {
    viewBytes += tree.byteLength;
    if (depth > MAX_VIEW_DEPTH)
      throw new LanceError(
        "InvalidInput",
        `a view reads itself, or views are nested more than ${MAX_VIEW_DEPTH} levels deep`,
      );
    if (++viewCount > MAX_VIEWS || viewBytes > MAX_VIEW_BYTES)
      throw new LanceError("InvalidInput", "the statement reads too many views, or too complex ones");
    const query = readTree(tree);
    refuseParameters(query);
    replaceIn(query, path, depth);
    const key = `${VIEW_PREFIX}${expressions.length}`;
    // It is read once, so that DuckDB keeps no rows of it.
    const own = { aliases: [], query: inSelect(query), key_targets: [] };
    expressions.push({ key, value: { ...own, materialized: "CTE_MATERIALIZE_DEFAULT" } });
    return key;
  }

  replaceIn(statement, namespacePath, 0);
  if (expressions.length > 0) {
    const all = outermost(statement["node"] as TreeNode)["cte_map"] as TreeNode;
    all["map"] = [...expressions, ...(all["map"] as readonly TreeNode[])];
  }
  return { tables: [...tables.values()], places };
}

/** Returns the outermost query of a statement. DuckDB writes DESCRIBE and SUMMARIZE without what stands around their query. */
function outermost(query: TreeNode): TreeNode {
  const source = query["from_table"] as TreeNode | undefined;
  return source?.["type"] === "SHOW_REF" ? outermost(source["query"] as TreeNode) : query;
}

/** Returns a query as a common table expression has it, which DESCRIBE and SUMMARIZE cannot begin. */
function inSelect(query: TreeNode): TreeNode {
  const node = query["node"] as TreeNode;
  if (outermost(node) === node) return query;
  const subquery = { type: "SUBQUERY", alias: "", sample: null, query_location: -1, column_name_alias: [] };
  return { ...query, node: { ...node, from_table: { ...subquery, subquery: query } } };
}

/** @throws LanceError InvalidInput for a query with parameters, which would be those of the statement */
function refuseParameters(value: unknown): void {
  if (typeof value !== "object" || value === null || isExactNumber(value)) return;
  if ((value as TreeNode)["class"] === "PARAMETER")
    throw new LanceError("InvalidInput", "the query of a view has no parameters");
  Object.values(value).forEach(refuseParameters);
}

/** Returns the place of a scan; undefined for a part of a statement that is not one. */
export function placeOf(node: TreeNode): number | undefined {
  if (node["type"] !== "TABLE_FUNCTION") return undefined;
  const { function_name: name, children } = node["function"] as TreeNode;
  if (name !== SCAN_FUNCTION) return undefined;
  const [{ value }] = children as [{ readonly value: TreeNode }];
  return value["value"] as number;
}

/** Whether a table is named with its schema, and columns may be. */
function isQualified({ schema_name: schema, alias }: TreeNode): boolean {
  return schema !== undefined && schema !== "" && alias === "";
}

function searchedTable(node: TreeNode, namespacePath: readonly string[]): NamedTable {
  const { target, ...rest } = readSearch(node);
  const { database, schema = "", name, text } = target;
  return { ...rest, database, path: pathOf(schema, name, namespacePath), text };
}

function namedTable(node: TreeNode, namespacePath: readonly string[]): NamedTable {
  const { catalog_name: catalog, schema_name: schema, table_name: name } = node as Record<string, string>;
  return {
    database: catalog === "" ? undefined : catalog,
    path: pathOf(schema as string, name as string, namespacePath),
    text: [catalog, schema, name].filter((part) => part !== "").join("."),
    ...stateOf(node),
  };
}

/** Returns the version and the branch that `AT` asks for. */
function stateOf(node: TreeNode): Pick<NamedTable, "version" | "branch"> {
  const clause = node["at_clause"] as { readonly unit: string; readonly expr: TreeNode } | null;
  if (clause === null) return { version: undefined, branch: undefined };
  const { type, value, is_null: isNull } = (clause.expr["value"] ?? {}) as TreeNode;
  if (clause.unit === "VERSION" && clause.expr["class"] === "CONSTANT" && !isNull) {
    // The value of a decimal, too, is a whole number: its digits without the point.
    const isWhole = INTEGERS.has(String((type as TreeNode)["id"]));
    if (isWhole && Number.isSafeInteger(value) && Number(value) > 0)
      return { version: BigInt(value as number), branch: undefined };
    if (typeof value === "string" && value !== "") return { version: undefined, branch: value };
  }
  throw new LanceError(
    "Unsupported",
    `a table is read AT (VERSION => 3), or the name of a branch${positionOf(node)}`,
  );
}

/** Returns what stands in the place of a view, which then gets the name of its expression. */
function viewNode({ alias, table_name: name, sample, column_name_alias: columns }: TreeNode): TreeNode {
  return {
    ...{ type: "BASE_TABLE", alias: alias === "" ? name : alias, sample, query_location: -1 },
    ...{ catalog_name: "", schema_name: "", table_name: "", column_name_alias: columns, at_clause: null },
  };
}

function scanNode(node: TreeNode, place: number): TreeNode {
  const { alias, sample, column_name_alias: columns } = node;
  const name = node["table_name"] ?? (node["function"] as TreeNode)["function_name"];
  return {
    type: "TABLE_FUNCTION",
    alias: alias === "" ? name : alias,
    sample,
    query_location: -1,
    function: {
      ...{ class: "FUNCTION", type: "FUNCTION", alias: "", query_location: -1 },
      ...{ function_name: SCAN_FUNCTION, schema: "", catalog: "" },
      children: [
        {
          ...{ class: "CONSTANT", type: "VALUE_CONSTANT", alias: "", query_location: -1 },
          value: { type: { id: "BIGINT", type_info: null }, is_null: false, value: place },
        },
      ],
      ...{ filter: null, order_bys: { type: "ORDER_MODIFIER", orders: [] } },
      ...{ distinct: false, is_operator: false, export_state: false },
    },
    column_name_alias: columns,
    with_ordinality: "WITHOUT_ORDINALITY",
  };
}

/** Shortens columns such as `sales.orders.id` to `orders.id`: a scan has the name of its table alone. */
function shortenColumns(value: unknown, tables: readonly TreeNode[]): void {
  if (typeof value !== "object" || value === null) return;
  const node = value as TreeNode;
  if (node["class"] === "COLUMN_REF") {
    const names = node["column_names"] as string[];
    for (const { catalog_name: catalog, schema_name: schema, table_name: table } of tables) {
      const prefix = [catalog, schema, table].filter((part) => part !== "") as string[];
      const fits = prefix.every((part, i) => part.toLowerCase() === names[i]?.toLowerCase());
      if (!fits || names.length <= prefix.length) continue;
      names.splice(0, prefix.length - 1);
      break;
    }
  }
  for (const child of Object.values(node)) shortenColumns(child, tables);
}

/** Returns a statement with kept tables in place of scans. @param nameAt returns the name of the kept table for a place; undefined if its scan stays. */
export function withKeptTables(statement: TreeNode, nameAt: (place: number) => string | undefined): TreeNode {
  return replaced(statement) as TreeNode;

  function replaced(value: unknown): unknown {
    if (typeof value !== "object" || value === null || isExactNumber(value)) return value;
    if (Array.isArray(value)) return value.map(replaced);
    const node = value as TreeNode;
    const place = placeOf(node);
    const name = place === undefined ? undefined : nameAt(place);
    if (name !== undefined) return keptNode(node, name);
    return Object.fromEntries(Object.entries(node).map(([key, child]) => [key, replaced(child)]));
  }
}

function keptNode({ alias, sample, column_name_alias: columns }: TreeNode, name: string): TreeNode {
  return {
    ...{ type: "BASE_TABLE", alias, sample, query_location: -1 },
    ...{ catalog_name: "", schema_name: KEPT_SCHEMA, table_name: name },
    ...{ column_name_alias: columns, at_clause: null },
  };
}

/** Whether a statement names a column `rowid`, which kept tables have and tables of the catalog do not. */
export function namesRowId(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { class: kind, column_names: names } = value as TreeNode;
  if (kind === "COLUMN_REF" && (names as string[]).at(-1)?.toLowerCase() === "rowid") return true;
  return Object.values(value).some(namesRowId);
}
