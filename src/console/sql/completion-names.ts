import type { SQLNamespace } from "@codemirror/lang-sql";

/** Names from the root downwards. */
type Id = readonly string[];

/** Returns how SQL names a table: its namespaces are joined to one name. */
export function sqlNames(id: Id): readonly string[] {
  const parents = id.slice(0, -1);
  return [...(parents.length === 0 ? [] : [parents.join("$")]), id.at(-1) ?? ""];
}

/**
 * Returns the names that an editor completes.
 *
 * @param columns columns of the tables that are known, by the tables' paths
 */
export function completionNames(
  tables: readonly Id[],
  columns: ReadonlyMap<string, readonly string[]>,
): SQLNamespace {
  const names: Record<string, Record<string, readonly string[]> | readonly string[]> = {};
  for (const id of tables) {
    const [first = "", second] = sqlNames(id);
    const own = columns.get(id.join("/")) ?? [];
    const there = names[first];
    if (second === undefined) names[first] = there ?? own;
    else names[first] = { ...(there === undefined || Array.isArray(there) ? {} : there), [second]: own };
  }
  return names as SQLNamespace;
}

/** Returns the tables whose names a statement has. */
export function tablesIn(statement: string, tables: readonly Id[]): readonly Id[] {
  const text = statement.toLowerCase();
  return tables.filter((id) => text.includes((id.at(-1) ?? "").toLowerCase()));
}
