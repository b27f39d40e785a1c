import { create } from "@bufbuild/protobuf";
import type {
  CommandGetDbSchemas,
  CommandGetTables,
} from "../../../gen/arrow/flight/protocol/sql/FlightSql_pb.ts";
import { QueryTableRequestSchema } from "../../../gen/lance/namespace/v1/query_pb.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import { ROOT_NAME } from "../headers.ts";
import { isLeftOut, tablePages, visibleNamespaces } from "../listing.ts";
import type { PipelineCalls, Presented } from "../pipeline-calls.ts";
import { schemaOf } from "../read-flights.ts";
import type { Row } from "./answer-rows.ts";
import { fitsPattern } from "./patterns.ts";

/** Type of every table. */
export const TABLE_TYPE = "TABLE";

/** The catalog as a caller sees it, from a namespace on. */
export interface CatalogView {
  readonly calls: PipelineCalls;
  readonly presented: Presented;
  /** Name of the catalog. */
  readonly name: string;
  readonly namespacePath: Identifier;
}

/** Separates the names of a namespace in the name of a schema. */
const DELIMITER = "$";

/** Returns the namespace of a schema. */
export function namespaceOf(schema: string): Identifier {
  return schema === ROOT_NAME ? [] : schema.split(DELIMITER);
}

/** Returns the name of a namespace in SQL; undefined for one that SQL cannot name. */
function schemaNameOf(namespace: Identifier): string | undefined {
  if (namespace.length === 0) return ROOT_NAME;
  const name = namespace.join(DELIMITER);
  return name === ROOT_NAME || namespace.some((each) => each.includes(DELIMITER)) ? undefined : name;
}

/** Lists the schemas that a command asks for, in order. */
export async function* schemaRows(command: CommandGetDbSchemas, view: CatalogView): AsyncIterable<Row> {
  for (const { name } of await schemasOf(command, view)) yield [view.name, name];
}

/** Lists the tables that a command asks for, in order. A table that the caller may list and not read has no schema, and is left out with schemas. */
export async function* tableRows(command: CommandGetTables, view: CatalogView): AsyncIterable<Row> {
  const { tableTypes, includeSchema, tableNameFilterPattern } = command;
  if (tableTypes.length > 0 && !tableTypes.includes(TABLE_TYPE)) return;
  const fits = fitsPattern(tableNameFilterPattern);
  for (const { name, namespace } of await schemasOf(command, view)) {
    for (const table of (await tablesIn(namespace, view)).filter(fits)) {
      const row = [view.name, name, table, TABLE_TYPE];
      const schema = includeSchema ? await schemaIfRead([...namespace, table], view) : undefined;
      if (!includeSchema) yield row;
      else if (schema !== undefined) yield [...row, schema];
    }
  }
}

async function schemasOf(
  { catalog, dbSchemaFilterPattern }: CommandGetDbSchemas | CommandGetTables,
  { name: own, calls, presented, namespacePath }: CatalogView,
): Promise<{ name: string; namespace: Identifier }[]> {
  if (catalog !== undefined && catalog !== own) return [];
  const fits = fitsPattern(dbSchemaFilterPattern);
  const found: { name: string; namespace: Identifier }[] = [];
  for await (const namespace of visibleNamespaces(namespacePath, calls, presented)) {
    const name = schemaNameOf(namespace);
    if (name !== undefined && fits(name)) found.push({ name, namespace });
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function tablesIn(namespace: Identifier, view: CatalogView): Promise<string[]> {
  const names: string[] = [];
  try {
    for await (const { tables } of tablePages(namespace, view.calls, view.presented)) names.push(...tables);
  } catch (thrown) {
    if (!isLeftOut(thrown)) throw thrown;
  }
  return names.sort();
}

async function schemaIfRead(id: string[], view: CatalogView): Promise<Uint8Array | undefined> {
  try {
    const query = create(QueryTableRequestSchema, { id });
    return (await schemaOf(query, view.calls, view.presented)).schema;
  } catch (thrown) {
    if (isLeftOut(thrown)) return undefined;
    throw thrown;
  }
}
