import { formatFieldPath } from "../../arrow/field-path.ts";
import type { ArrowField } from "../../arrow/schema.ts";
import { LanceError } from "../../namespace/errors.ts";
import { columnOf, fieldsByName, fieldsOf, typeText } from "../column-types.ts";
import { openTable } from "../opened-tables.ts";
import type { RowChanges, SqlCall, SqlStatement, SqlTableName } from "../sql-engine.ts";
import { ROW_FUNCTIONS } from "../tree/allowed-functions.ts";
import { type ColumnNamed, exactFilterOf } from "../tree/filters.ts";
import { nullsText } from "../tree/fit-columns.ts";
import { positionOf, type TreeNode } from "../tree/tree.ts";
import { constantsOf, expressionOf, typeOf } from "./value-expressions.ts";
import type { PreparedWrite, PrepareQuery, WriteStatement } from "./write-statement.ts";
import { rowsOf } from "./write-statement.ts";

/** UPDATE or DELETE. */
type ChangeStatement = Extract<WriteStatement, { kind: "update" | "delete" }>;

/** Says which conditions of changes are served. */
const CHANGED = "a condition for changed rows compares columns with values";

/** The parts of a change that DuckDB computes, once for all rows. */
interface Computed {
  readonly change: Change;
  /** Each has two columns of the result, in their order: its value, and the name of its type. */
  readonly parts: readonly TreeNode[];
  readonly hasParameters: boolean;
}

/**
 * Prepares UPDATE or DELETE: DuckDB computes what is the same for all rows, and the rest is printed in the language of UpdateTable, where it has the
 * same meaning there.
 *
 * @throws LanceError Unsupported, when it runs, for a condition or a value that may have another one, with its position
 */
export async function prepareChange(
  { kind, target, alias, query }: ChangeStatement,
  name: SqlTableName,
  prepareQuery: PrepareQuery,
  call: SqlCall,
): Promise<PreparedWrite> {
  const columns = fieldsByName(fieldsOf(await openTable(call.tables, name, call.signal)), target.text);
  const columnNamed: ColumnNamed = (names) => {
    const [column = "", table = alias, ...others] = names.map((each) => each.toLowerCase()).reverse();
    return others.length === 0 && table.toLowerCase() === alias.toLowerCase()
      ? columns.get(column)
      : undefined;
  };
  const typed = [...columns.values()].map(columnOf).filter(({ refused }) => refused === undefined);
  const text = nullsText(typed.map(({ name: column, type }) => ({ name: column, type: typeText(type) })));
  let computed: Computed | undefined;
  const apply = (own: TreeNode, sent: TreeNode) => {
    const { node } = own as { readonly node: TreeNode };
    const casts = new Map(
      (node["select_list"] as readonly TreeNode[]).map((cast, at) => [typed[at]?.name, cast]),
    );
    const change = readChange(sent, kind);
    const parts = constantParts(change.condition);
    const selected = [...parts];
    const assigned = new Set<string>();
    for (const { column, value } of change.assignments) {
      const target = targetOf(column, columnNamed).name;
      if (assigned.size === assigned.add(target).size)
        throw new LanceError("InvalidInput", `column "${target}" gets two values${positionOf(column)}`);
      const cast = casts.get(target);
      const isWhole = isConstant(value) && cast !== undefined;
      const computedParts = isWhole ? [value] : constantParts(value);
      parts.push(...computedParts);
      selected.push(...(isWhole ? [{ ...cast, alias: "", child: value }] : computedParts));
    }
    // A statement has all its parameters.
    const parameters = (sent["named_param_map"] as readonly TreeNode[]).map(({ key }) => ({
      ...{ class: "PARAMETER", type: "VALUE_PARAMETER", alias: "", query_location: -1 },
      identifier: key,
    }));
    const pairs = selected.flatMap((part) => [part, typeOf(part)]);
    node["select_list"] = [
      ...pairs,
      ...parameters,
      ...(node["select_list"] as readonly TreeNode[]).slice(0, 1),
    ];
    own["named_param_map"] = sent["named_param_map"];
    computed = { change, parts, hasParameters: parameters.length > 0 };
  };
  const values = await prepareQuery(query, { ...call, reshape: { text, apply, isPure: false } });
  const changes = (row: Uint8Array | undefined, signal: AbortSignal) =>
    changesOf(computed as Computed, row, signal, values, columnNamed);
  // A statement without parameters is refused before it runs.
  if (computed?.hasParameters === false) await changes(undefined, call.signal);
  return {
    parameters: values.parameters,
    async run(given, writes, { signal }) {
      let count = 0n;
      for (const row of await rowsOf(given)) {
        const change = await changes(row, signal);
        const changed =
          kind === "update"
            ? await writes.update(name.path, change, signal)
            : await writes.delete(name.path, change.predicate, signal);
        count = changed === undefined || count === UNKNOWN ? UNKNOWN : count + changed;
      }
      return count;
    },
  };
}

/** Number of rows where the catalog does not tell it. */
const UNKNOWN = -1n;

/** Computes what is the same for all rows, and prints the change. */
async function changesOf(
  { change, parts }: Computed,
  row: Uint8Array | undefined,
  signal: AbortSignal,
  values: SqlStatement,
  columnNamed: ColumnNamed,
): Promise<RowChanges> {
  const messages: Uint8Array[] = [];
  for await (const message of values.run(row, signal)) messages.push(message);
  const constants = await constantsOf(Buffer.concat(messages), parts.length);
  if (constants === undefined) throw new LanceError("Unsupported", "a value of the statement has many rows");
  const computed = new Map(
    parts.flatMap((part, at) => (constants[at] === undefined ? [] : [[part, constants[at]] as const])),
  );
  const { condition } = change;
  return {
    predicate:
      condition === undefined ? "true" : exactFilterOf(substitute(condition, computed), columnNamed, CHANGED),
    assignments: change.assignments.map(({ column, value }) => {
      const field = targetOf(column, columnNamed);
      const expression = expressionOf(substitute(value, computed), field, columnNamed);
      if (expression !== undefined) return { column: formatFieldPath([field.name]), expression };
      throw new LanceError(
        "Unsupported",
        `the value of column "${field.name}" is not one that an update computes${positionOf(value)}`,
      );
    }),
  };
}

/** @throws LanceError InvalidInput for a column that the table has not */
function targetOf(column: TreeNode, columnNamed: ColumnNamed): ArrowField {
  const names = column["column_names"] as readonly string[];
  const field = columnNamed(names);
  if (field !== undefined) return field;
  throw new LanceError("InvalidInput", `the table has no column "${names.join(".")}"${positionOf(column)}`);
}

/** Kinds of expressions whose value depends on a row, or on more than one. */
const ROW_BOUND: ReadonlySet<unknown> = new Set([
  ...["COLUMN_REF", "DEFAULT", "LAMBDA", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "WINDOW"],
]);

/** Whether an expression has one value for a whole statement. */
function isConstant(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  const { class: kind, function_name: name } = value as TreeNode;
  if (ROW_BOUND.has(kind)) return false;
  if (name !== undefined && ROW_FUNCTIONS.has(String(name).toLowerCase())) return false;
  return Object.values(value).every(isConstant);
}

/** Returns the largest parts of a condition that have one value, apart from constants. */
function constantParts(node: unknown): TreeNode[] {
  if (typeof node !== "object" || node === null) return [];
  const { class: kind } = node as TreeNode;
  if (kind === "CONSTANT") return [];
  if (kind !== undefined && isConstant(node)) return [node as TreeNode];
  return Object.values(node).flatMap(constantParts);
}

/** Returns an expression with values in place of parts of it. */
function substitute<T>(node: T, values: ReadonlyMap<unknown, TreeNode>): T {
  if (typeof node !== "object" || node === null || Object.getPrototypeOf(node) === null) return node;
  const value = values.get(node);
  if (value !== undefined) return value as T;
  if (Array.isArray(node)) return node.map((item) => substitute(item, values)) as T;
  return Object.fromEntries(
    Object.entries(node).map(([key, child]) => [key, substitute(child, values)]),
  ) as T;
}

/** What UPDATE or DELETE says about rows, as parts of a tree. */
interface Change {
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
function readChange({ node }: TreeNode, kind: "update" | "delete"): Change {
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
