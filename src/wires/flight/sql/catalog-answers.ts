import { create } from "@bufbuild/protobuf";
import type {
  CommandGetDbSchemas,
  CommandGetTables,
} from "../../../gen/arrow/flight/protocol/sql/FlightSql_pb.ts";
import { ViewService } from "../../../gen/lance/gateway/v1/sql_view_pb.ts";
import { QueryTableRequestSchema } from "../../../gen/lance/namespace/v1/query_pb.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import { ROOT_NAME } from "../headers.ts";
import { isLeftOut, tablePages, viewNames, visibleNamespaces } from "../listing.ts";
import type { PipelineCalls, Presented } from "../pipeline-calls.ts";
import { schemaOf } from "../read-flights.ts";
import type { Row } from "./answer-rows.ts";

/** Types of tables. */
export const TABLE_TYPE = "TABLE";
export const VIEW_TYPE = "VIEW";

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

/**
 * Lists the tables and views that a command asks for, in order. A table that the caller may list and not read has no schema, and is left out with
 * schemas.
 */
export async function* tableRows(command: CommandGetTables, view: CatalogView): AsyncIterable<Row> {
  const { tableTypes, includeSchema, tableNameFilterPattern } = command;
  const fits = fitsPattern(tableNameFilterPattern);
  const kinds = KINDS.filter(({ type }) => tableTypes.length === 0 || tableTypes.includes(type));
  for (const { name, namespace } of await schemasOf(command, view)) {
    const listed = await Promise.all(
      kinds.map(async (kind) => (await kind.list(namespace, view)).map((table) => ({ ...kind, table }))),
    );
    const tables = listed.flat().filter(({ table }) => fits(table));
    for (const { type, table, schemaOf: read } of tables.sort((a, b) => (a.table < b.table ? -1 : 1))) {
      const row = [view.name, name, table, type];
      const schema = includeSchema ? await ifRead(() => read([...namespace, table], view)) : undefined;
      if (!includeSchema) yield row;
      else if (schema !== undefined) yield [...row, schema];
    }
  }
}

/** Types of tables with the calls that list and describe them. */
const KINDS = [
  {
    type: TABLE_TYPE,
    list: (namespace: Identifier, { calls, presented }: CatalogView) =>
      unlessLeftOut(async () =>
        (await Array.fromAsync(tablePages(namespace, calls, presented))).flatMap(({ tables }) => tables),
      ),
    schemaOf: async (id: string[], { calls, presented }: CatalogView) =>
      (await schemaOf(create(QueryTableRequestSchema, { id }), calls, presented)).schema,
  },
  {
    type: VIEW_TYPE,
    list: (namespace: Identifier, { calls, presented }: CatalogView) =>
      unlessLeftOut(() => Array.fromAsync(viewNames(namespace, calls, presented))),
    schemaOf: async (id: string[], { calls, presented }: CatalogView) =>
      (await calls.unary(ViewService.method.describeView, { id }, presented)).response.arrowSchema,
  },
] as const;

async function unlessLeftOut(list: () => Promise<string[]>): Promise<string[]> {
  return (await ifRead(list)) ?? [];
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

/** Returns undefined for an object that is left out. */
async function ifRead<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (thrown) {
    if (isLeftOut(thrown)) return undefined;
    throw thrown;
  }
}

/**
 * Returns a test for names that fit a pattern of SQL: `%` is any text, `_` any character, and `\` takes the next character as it is. It goes back to
 * the last `%` alone, so that a pattern costs at most its length times that of the name.
 */
export function fitsPattern(pattern: string | undefined): (name: string) => boolean {
  if (pattern === undefined) return () => true;
  const parts = partsOf(pattern);
  return (name) => fits(parts, [...name]);
}

/** A character, or a wildcard. */
type Part = { readonly character: string } | "one" | "any";

function partsOf(pattern: string): Part[] {
  const parts: Part[] = [];
  let isEscaped = false;
  for (const character of pattern) {
    if (!isEscaped && character === "\\") isEscaped = true;
    else {
      parts.push(
        isEscaped ? { character } : character === "%" ? "any" : character === "_" ? "one" : { character },
      );
      isEscaped = false;
    }
  }
  return isEscaped ? [...parts, { character: "\\" }] : parts;
}

function fits(parts: readonly Part[], name: readonly string[]): boolean {
  let [at, next, lastAny, from] = [0, 0, -1, 0];
  while (at < name.length) {
    const part = parts[next];
    if (part === "any") {
      lastAny = next++;
      from = at;
    } else if (part === "one" || part?.character === name[at]) {
      next++;
      at++;
    } else if (lastAny >= 0) {
      next = lastAny + 1;
      at = ++from;
    } else return false;
  }
  return parts.slice(next).every((part) => part === "any");
}
