import { LanceError } from "../../namespace/errors.ts";
import type { SqlCall, SqlTableName } from "../sql-engine.ts";
import { pathOf } from "../tree/tables.ts";

/** What a statement changes, by its name in the statement. */
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
