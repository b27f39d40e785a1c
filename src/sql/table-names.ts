import { LanceError } from "../namespace/errors.ts";
import type { SqlCall, SqlTableName } from "./sql-engine.ts";
import type { TokenReader } from "./writes/tokens.ts";

/** Separates the names of a namespace path in the name of a schema. */
const DELIMITER = "$";

/** Name of a schema that is the root. */
const ROOT_SCHEMA = "public";

/** The name of a table in a statement. */
export interface Target {
  /** Database that the name begins with. Default: the database of the call. */
  readonly database: string | undefined;
  /** Names of the schema; undefined for a name without one. */
  readonly schema: string | undefined;
  readonly name: string;
  /** The name as the statement writes it, for errors. */
  readonly text: string;
}

/** Returns what names mean that are joined by dots. @param names one to three */
export function targetOf(names: readonly string[]): Target {
  const [name = "", schema, database] = names.toReversed();
  return { name, schema, database, text: names.join(".") };
}

/** Returns the object that a statement names. @throws LanceError Unsupported for the name of another database */
export function nameOf(
  { database, schema = "", name }: Target,
  { namespacePath = [], writes }: SqlCall,
): SqlTableName {
  if (database !== undefined && database !== writes?.database)
    throw new LanceError("Unsupported", `the database "${database}" cannot be named here`);
  return { database, path: pathOf(schema, name, namespacePath), version: undefined, branch: undefined };
}

/** Reads the name of a table, whose schema and database may be before it. */
export function targetAt(tokens: TokenReader): Target {
  const names = [tokens.name("the name of a table")];
  while (names.length < 3 && tokens.accept(".")) names.push(tokens.name("a name"));
  return targetOf(names);
}

/** Returns the path that a name means. @param schema "" for a name without one, which is in the namespace of the call */
export function pathOf(schema: string, name: string, namespacePath: readonly string[]): string[] {
  return [...(schema === "" ? namespacePath : namespaceOf(schema)), name];
}

/** Returns the namespace that the name of a schema means. */
function namespaceOf(schema: string): string[] {
  return schema === ROOT_SCHEMA ? [] : schema.split(DELIMITER);
}

/** Returns a statement that reads the table or view of a path. */
export function statementReading(path: readonly string[]): string {
  const parents = path.length > 1 ? path.slice(0, -1).join(DELIMITER) : ROOT_SCHEMA;
  return `FROM ${[parents, path.at(-1) ?? ""].map((name) => `"${name.replaceAll('"', '""')}"`).join(".")}`;
}
