import type { Schema } from "apache-arrow";
import { type Identifier, LanceError } from "../exports.ts";
import type { Namespace } from "../namespace.ts";

/** Returns the schema that new rows of a table must fit; undefined for one that is declared, which gets its columns with the first rows. */
export async function schemaForRows(
  namespace: Namespace,
  id: Identifier,
  signal: AbortSignal,
): Promise<Schema | undefined> {
  try {
    const rows = await namespace.queryTable({ id, filter: "false", k: 1 }, { signal }).toTable();
    return rows.schema;
  } catch (error) {
    if (!(error instanceof LanceError) || !error.is("TableNotFound")) throw error;
    const { isOnlyDeclared } = await namespace.describeTable({ id, checkDeclared: true }, { signal });
    if (isOnlyDeclared === true) return undefined;
    throw error;
  }
}
