import { LanceError } from "../../namespace/errors.ts";

/** A node of a statement's tree, as DuckDB serializes it. */
export type TreeNode = { [key: string]: unknown };

/** What DuckDB answers about a statement. */
interface Serialized {
  readonly error: boolean;
  readonly error_type?: string;
  readonly error_message?: string;
  readonly position?: string;
  readonly statements?: readonly TreeNode[];
}

/** Largest tree, in bytes of JSON: it is read at once. */
const MAX_TREE_BYTES = 1024 * 1024;

/** Stands for no position; JavaScript has no number for it. */
const NO_POSITION = '"query_location":18446744073709551615';
const OWN_NO_POSITION = '"query_location":-1';

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
const json = JSON as unknown as {
  parse(text: string, reviver: Reviver): unknown;
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
};

/**
 * Reads the tree of a single statement. Numbers that JavaScript would round keep their text.
 *
 * @throws LanceError InvalidInput for a statement that does not parse; Unsupported for one that is not a query
 */
export function readTree(text: Uint8Array): TreeNode {
  if (text.byteLength > MAX_TREE_BYTES) throw new LanceError("InvalidInput", "the statement is too complex");
  const answer = parsed(Buffer.from(text).toString().replaceAll(NO_POSITION, OWN_NO_POSITION));
  if (answer.error) throw refusalOf(answer);
  const [statement, ...others] = answer.statements ?? [];
  if (statement === undefined) throw new LanceError("InvalidInput", "there is no statement");
  if (others.length > 0)
    throw new LanceError("Unsupported", "a request has one statement; send each statement of its own");
  return statement;
}

function parsed(text: string): Serialized {
  try {
    return json.parse(text, (_key, value, { source }) =>
      typeof value === "number" && source !== undefined && String(value) !== source
        ? json.rawJSON(source)
        : value,
    ) as Serialized;
  } catch (cause) {
    throw new LanceError("InvalidInput", "the statement has a number that is too large", { cause });
  }
}

function refusalOf({ error_type: type, error_message: message = "", position }: Serialized): LanceError {
  if (type === "not implemented")
    return new LanceError(
      "Unsupported",
      "the statement is not supported; SQL reads by SELECT, FROM, VALUES, WITH, DESCRIBE, SUMMARIZE, EXPLAIN and SHOW TABLES",
    );
  const at = position === undefined ? "" : ` at position ${Number(position) + 1}`;
  return new LanceError("InvalidInput", `the statement does not parse${at}: ${message}`);
}

/** Writes the tree of a statement, as DuckDB reads it. */
export function writeTree(statement: TreeNode): Uint8Array {
  const text = JSON.stringify({ error: false, statements: [statement] });
  return Buffer.from(text.replaceAll(OWN_NO_POSITION, NO_POSITION));
}

/** Whether a part of a tree is a number that keeps its text. */
export function isExactNumber(value: unknown): boolean {
  return json.isRawJSON(value);
}

/** Returns where a node stands in its statement, for an error; "" if the parser does not tell. */
export function positionOf({ query_location: location }: TreeNode): string {
  return typeof location === "number" && location >= 0 ? ` at position ${location + 1}` : "";
}

/** Name of the table function that stands for the tables of a statement. Statements cannot name it. */
export const SCAN_FUNCTION = "lance_gateway_scan";

/** Name of the schema of tables that a process keeps. In a statement, a schema of this name is a namespace. */
export const KEPT_SCHEMA = "kept";

/** Beginning of the names of common table expressions that stand for views. Expressions of statements cannot have it. */
export const VIEW_PREFIX = "lance_gateway_view_";
