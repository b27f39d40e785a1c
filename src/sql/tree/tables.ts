import { LanceError } from "../../namespace/errors.ts";
import type { SqlTableName } from "../sql-engine.ts";
import { checkTree } from "./check.ts";
import { SCAN_FUNCTION } from "./own-names.ts";
import { positionOf, type TreeNode } from "./tree.ts";

/** A table that a statement names, once for each place that means the same table. */
export interface NamedTable extends SqlTableName {
  /** Name as the statement writes it, for errors. */
  readonly text: string;
}

/** Separates the names of a namespace path in the name of a schema. */
const DELIMITER = "$";

/** Name of a schema that is the root. */
const ROOT_SCHEMA = "public";

/** Largest number of tables of a statement. */
const MAX_TABLES = 64;

/** The tables of a statement, and the places where it names them. */
export interface NamedTables {
  readonly tables: readonly NamedTable[];
  /** For each scan, in the order of their numbers: the position of its table. */
  readonly places: readonly number[];
}

/**
 * Checks a statement, and puts a scan in each place where it names a table.
 *
 * @param namespacePath namespace of names without a schema
 * @throws LanceError Unsupported, InvalidInput
 */
export function replaceTables(statement: TreeNode, namespacePath: readonly string[]): NamedTables {
  const tables = new Map<string, NamedTable>();
  const numbers = new Map<string, number>();
  const places: number[] = [];
  const qualified: TreeNode[] = [];
  checkTree(statement, (node) => {
    const table = namedTable(node, namespacePath);
    const key = JSON.stringify([table.database, table.path, table.branch, String(table.version)]);
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    if (numbers.size > MAX_TABLES)
      throw new LanceError("InvalidInput", `the statement names more than ${MAX_TABLES} tables`);
    tables.set(key, table);
    if (node["schema_name"] !== "" && node["alias"] === "") qualified.push(node);
    return scanNode(node, places.push(number) - 1);
  });
  if (qualified.length > 0) shortenColumns(statement, qualified);
  return { tables: [...tables.values()], places };
}

/** Returns the place of a scan; undefined for a part of a statement that is not one. */
export function placeOf(node: TreeNode): number | undefined {
  if (node["type"] !== "TABLE_FUNCTION") return undefined;
  const { function_name: name, children } = node["function"] as TreeNode;
  if (name !== SCAN_FUNCTION) return undefined;
  const [{ value }] = children as [{ readonly value: TreeNode }];
  return value["value"] as number;
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

/** Returns the path that a name means. @param schema "" for a name without one, which is in the namespace of the call */
export function pathOf(schema: string, name: string, namespacePath: readonly string[]): string[] {
  const path = schema === "" ? namespacePath : schema === ROOT_SCHEMA ? [] : schema.split(DELIMITER);
  return [...path, name];
}

/** Returns the version and the branch that `AT` asks for. */
function stateOf(node: TreeNode): Pick<NamedTable, "version" | "branch"> {
  const clause = node["at_clause"] as { readonly unit: string; readonly expr: TreeNode } | null;
  if (clause === null) return { version: undefined, branch: undefined };
  const { value, is_null: isNull } = (clause.expr["value"] ?? {}) as TreeNode;
  if (clause.unit === "VERSION" && clause.expr["class"] === "CONSTANT" && !isNull) {
    if (Number.isSafeInteger(value) && Number(value) > 0)
      return { version: BigInt(value as number), branch: undefined };
    if (typeof value === "string" && value !== "") return { version: undefined, branch: value };
  }
  throw new LanceError(
    "Unsupported",
    `a table is read AT (VERSION => 3), or the name of a branch${positionOf(node)}`,
  );
}

function scanNode(node: TreeNode, place: number): TreeNode {
  const { alias, table_name: name, sample, column_name_alias: columns } = node;
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
