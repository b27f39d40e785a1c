import { KEPT_SCHEMA } from "./own-names.ts";
import { placeOf } from "./tables.ts";
import { isExactNumber, type TreeNode } from "./tree.ts";

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
