import type { ArrowField } from "../../../../arrow/schema.ts";
import type { SqlToken } from "./tokens.ts";
import { nameOf } from "./tokens.ts";
import type { SqlTree } from "./tree.ts";
import { parseSql } from "./trees.ts";

/** Returns the columns that SQL expressions may read: those whose names, in whatever case, are among {@link namesIn}. */
export function namedColumns(expressions: readonly string[], fields: readonly ArrowField[]): ArrowField[] {
  const names = new Set<string>();
  for (const expression of expressions) {
    for (const name of namesIn(parseSql(expression))) names.add(name);
  }
  return fields.filter(({ name }) => names.has(name.toLowerCase()));
}

/**
 * Returns the names in an expression that may be columns, in lower case: all but the fields of structs, functions, types and texts. Some words
 * of the grammar are among them.
 */
export function namesIn(tree: SqlTree): Set<string> {
  const found = new Set<string>();
  for (const name of tree.names)
    found.add(lowerCase(name.kind === "path" ? (name.parts[0] as SqlToken) : name));
  return found;
}

/** Returns the paths in an expression that may be columns or fields of their structs, in lower case. */
export function pathsIn({ names }: SqlTree): string[][] {
  return names.map((name) => (name.kind === "path" ? name.parts : [name]).map(lowerCase));
}

function lowerCase(name: SqlToken): string {
  return name.word || nameOf(name).toLowerCase();
}
