import { z } from "zod";
import {
  type DescribeTableResponse,
  type IndexContent,
  LanceError,
  type TableVersion,
} from "../../client/exports.ts";
import { parsePath, pathText } from "../../client/object-path.ts";
import { arrowTypeName } from "../../client/rows/type-words.ts";
import { type BoundedList, boundedListOf, noteMember, objectText } from "./bounded-text.ts";
import { defineTool, INPUTS, type ToolContext } from "./tool.ts";

/** Number of versions that a description has. */
const NEWEST_VERSIONS = 5;

const PAGE = z.strictObject({
  namespace: INPUTS.namespace,
  limit: INPUTS.pageLimit,
  page_token: INPUTS.pageToken,
});

const listNamespaces = defineTool({
  name: "list_namespaces",
  title: "List namespaces",
  description:
    "Lists the namespaces directly in a namespace, page by page. Namespaces contain tables and further namespaces.",
  input: PAGE,
  effect: "reads",
  async run({ namespace: path, limit, page_token: pageToken }, { namespace, signal }) {
    const request = { id: parsePath(path), limit, pageToken };
    const { namespaces, pageToken: next } = await namespace.listNamespaces(request, { signal });
    return pageText("namespaces", namespaces, next);
  },
});

const listTables = defineTool({
  name: "list_tables",
  title: "List tables",
  description:
    "Lists the tables directly in a namespace, page by page. Call list_namespaces for the namespaces in it.",
  input: PAGE,
  effect: "reads",
  async run({ namespace: path, limit, page_token: pageToken }, { namespace, signal }) {
    const request = { id: parsePath(path), limit, pageToken };
    const { tables, pageToken: next } = await namespace.listTables(request, { signal });
    return pageText("tables", tables, next);
  },
});

function pageText(name: string, names: readonly string[], next: string | undefined): string {
  const list = boundedListOf(names);
  if (!list.isFull) return objectText({ next_page_token: next || undefined }, { [name]: list });
  const note = `cut after ${list.count} of ${names.length} names; ask for the page again with limit ${list.count}`;
  return objectText({ note }, { [name]: list });
}

const describeTable = defineTool({
  name: "describe_table",
  title: "Describe a table",
  description:
    "Returns the columns of a table with their types, its number of rows, its newest versions, and its indices. Call it before you query a table: a text search requires an index of type FTS or INVERTED, and a vector search a column of vectors.",
  input: z.strictObject({ table: INPUTS.table, version: INPUTS.version, branch: INPUTS.branch }),
  effect: "reads",
  async run({ table: path, version, branch }, context) {
    const id = parsePath(path);
    const { namespace, signal } = context;
    const found = await namespace.describeTable(
      { id, version, branch, loadDetailedMetadata: true },
      { signal },
    );
    const notes: string[] = [];
    const part = <T>(name: string, read: Promise<T>) => readPart(name, read, notes, context);
    const rows = await part("row_count", namespace.countTableRows({ id, version, branch }, { signal }));
    const versions = await part(
      "versions",
      namespace.listTableVersions({ id, branch, descending: true, limit: NEWEST_VERSIONS }, { signal }),
    );
    const indices = await part("indices", namespace.listTableIndices({ id, version, branch }, { signal }));
    const allProperties = Object.entries({ ...found.metadata, ...found.properties });
    const lists = {
      columns: boundedListOf(columnsOf(found)),
      ...(versions && {
        versions: boundedListOf(versions.versions.slice(0, NEWEST_VERSIONS).map(versionOf)),
      }),
      ...(indices && { indices: boundedListOf(indices.indexes.map(indexOf)) }),
      properties: boundedListOf(allProperties),
    };
    const { properties, ...shown } = lists;
    for (const [name, list] of Object.entries(lists)) if (list.isFull) notes.push(cutNote(name, list));
    const members = {
      table: pathText(id),
      version: found.version,
      row_count: rows?.count,
      ...(found.isOnlyDeclared === true && { is_only_declared: true }),
      ...(properties.count > 0 && { properties: new Map(allProperties.slice(0, properties.count)) }),
      ...noteMember(notes),
    };
    return objectText(members, shown);
  },
});

function cutNote(name: string, { count }: BoundedList): string {
  return `${name} are cut after ${count}`;
}

/** Reads a part of a description. A catalog may lack its operation, and a caller the permission for it: the description then says so. */
async function readPart<T>(
  name: string,
  read: Promise<T>,
  notes: string[],
  { signal }: ToolContext,
): Promise<T | undefined> {
  try {
    return await read;
  } catch (thrown) {
    if (!(thrown instanceof LanceError) || signal.aborted) throw thrown;
    notes.push(`no ${name}: ${thrown.kind}: ${thrown.message}`);
    return undefined;
  }
}

function columnsOf({ schema }: DescribeTableResponse): readonly object[] {
  return (schema?.fields ?? []).map(({ name, type, nullable }) => ({
    name,
    type: type === undefined ? "unknown" : arrowTypeName(type),
    ...(!nullable && { not_null: true }),
  }));
}

function versionOf({ version, timestampMillis }: TableVersion): object {
  if (timestampMillis === undefined) return { version };
  return { version, created: new Date(Number(timestampMillis)).toISOString() };
}

function indexOf({ indexName, columns, indexType, status, numUnindexedRows }: IndexContent): object {
  return {
    name: indexName,
    columns,
    ...(indexType !== undefined && { type: indexType }),
    status,
    ...(numUnindexedRows !== undefined && { unindexed_rows: numUnindexedRows }),
  };
}

/** Tools that read the catalog. */
export const CATALOG_TOOLS = [listNamespaces, listTables, describeTable];
