import {
  type DescribeNamespaceResponse,
  DescribeNamespaceResponseSchema,
  type DescribeTableResponse,
  DescribeTableResponseSchema,
  GetTableStatsResponseSchema,
  type Identifier,
  isNotFound,
} from "../../../client/exports.ts";
import type { Namespace } from "../../../client/namespace.ts";
import { parsePath, pathText } from "../../../client/object-path.ts";
import { arrowTypeName, type TypeDescription, typeInWords } from "../../../client/rows/type-words.ts";
import { parseSwitch } from "../../../config/parsers.ts";
import { DescribePageCacheResponseSchema } from "../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { catalogCommand, jsonOf } from "../catalog-command.ts";
import { BRANCH_OPTION, ROW_OPTIONS, STATE_OPTIONS } from "../rows/read-options.ts";
import { factTable, sizeText, textTable } from "../text-table.ts";
import { cachedBytesOf, cacheFacts } from "../upkeep/prewarm.ts";

interface Entry {
  readonly kind: "namespace" | "table";
  readonly path: string;
}

/** `lance-gateway ls`: lists a namespace. */
export const ls = catalogCommand({
  operands: "[NAMESPACE]",
  access: "read",
  options: {
    recursive: {
      flag: "recursive",
      help: "List the namespaces below, too.",
      fallback: "false",
      parse: parseSwitch,
    },
  },
  async run({ namespace, operands: [path = ""], options, signal, answerList }) {
    await answerList(walk(namespace, parsePath(path), options.recursive, signal), {
      headings: ["KIND", "PATH"],
      row: ({ kind, path: at }) => [kind, at],
    });
  },
});

/** Yields what is in a namespace. */
export async function* walk(
  namespace: Namespace,
  id: Identifier,
  recursive: boolean,
  signal: AbortSignal,
): AsyncIterable<Entry> {
  const at = (name: string) => pathText([...id, name]);
  for await (const name of namespace.listNamespaces({ id }, { signal })) {
    yield { kind: "namespace", path: at(name) };
    if (recursive) yield* walk(namespace, [...id, name], true, signal);
  }
  for await (const name of namespace.listTables({ id, includeDeclared: true }, { signal })) {
    yield { kind: "table", path: at(name) };
  }
}

/** `lance-gateway describe`: describes a table or a namespace. */
export const describe = catalogCommand({
  operands: "<PATH>",
  access: "read",
  options: {
    arrowTypes: {
      flag: "arrow-types",
      help: "Name the types of columns as Arrow does, such as fixed_size_list<float32, 768>, instead of in words.",
      fallback: "false",
      parse: parseSwitch,
    },
  },
  async run({ namespace, operands: [path = ""], options: { arrowTypes }, signal, answer }) {
    const id = parsePath(path);
    const table =
      id.length === 0
        ? undefined
        : await namespace.describeTable({ id, loadDetailedMetadata: true }, { signal }).catch((error) => {
            if (!isNotFound(error)) throw error;
            return undefined;
          });
    if (table !== undefined) {
      await answer(jsonOf(DescribeTableResponseSchema, table), () =>
        tableText(table, arrowTypes ? arrowTypeName : typeInWords),
      );
      return;
    }
    const found = await namespace.describeNamespace({ id }, { signal }).catch((error) => {
      if (isNotFound(error) && id.length > 0) error.message = `there is no table and no namespace ${path}`;
      throw error;
    });
    await answer(jsonOf(DescribeNamespaceResponseSchema, found), () => namespaceText(found));
  },
});

function namespaceText({ properties }: DescribeNamespaceResponse): string {
  const rows = Object.entries(properties);
  return textTable([["PROPERTY", "VALUE"], ...rows]);
}

function tableText(table: DescribeTableResponse, nameOf: (type: TypeDescription) => string): string {
  const { version, location, stats, properties, metadata, schema } = table;
  const facts = [
    ["version", version === undefined ? "none: it is only declared" : String(version)],
    ["location", location ?? ""],
    ...(stats === undefined ? [] : [["rows", String((stats as { numRows?: bigint }).numRows ?? "")]]),
    ...Object.entries(properties).map(([name, value]) => [`property ${name}`, value]),
    ...Object.entries(metadata).map(([name, value]) => [`metadata ${name}`, value]),
  ].filter(([, value]) => value !== "");
  const columns = (schema?.fields ?? []).map((field) => [
    field.name,
    field.type === undefined ? "" : nameOf(field.type),
    field.nullable ? "yes" : "no",
  ]);
  const fields = columns.length === 0 ? "" : `\n${textTable([["COLUMN", "TYPE", "NULLABLE"], ...columns])}`;
  return textTable([["TABLE", ""], ...facts]).slice("TABLE\n".length) + fields;
}

/** `lance-gateway count`: prints the number of rows of a table. */
export const count = catalogCommand({
  operands: "<TABLE>",
  access: "read",
  options: { filter: ROW_OPTIONS.filter, ...STATE_OPTIONS },
  async run({ namespace, operands: [path = ""], options, signal, print }) {
    const { filter, version, branch } = options;
    const request = { id: parsePath(path), predicate: filter, version, branch };
    const { count: rows } = await namespace.countTableRows(request, { signal });
    await print(options.json ? `{"count":${rows}}\n` : `${rows}\n`);
  },
});

/** `lance-gateway stats`: prints the figures of a table. */
export const stats = catalogCommand({
  operands: "<TABLE>",
  access: "read",
  options: { branch: BRANCH_OPTION },
  async run({ namespace, backend, operands: [path = ""], options: { branch }, signal, answer }) {
    const id = parsePath(path);
    const [found, cached] = await Promise.all([
      namespace.getTableStats({ id, branch }, { signal }),
      cachedBytesOf(backend, id, signal),
    ]);
    const { numRows, totalBytes, numIndices, fragmentStats } = found;
    const lengths = fragmentStats?.lengths;
    const figures = jsonOf(GetTableStatsResponseSchema, found) as object;
    const json =
      cached === undefined ? figures : { ...figures, cache: jsonOf(DescribePageCacheResponseSchema, cached) };
    await answer(json, () =>
      factTable({
        rows: numRows,
        size: sizeText(Number(totalBytes)),
        indices: numIndices,
        fragments: fragmentStats?.numFragments,
        "small fragments": fragmentStats?.numSmallFragments,
        "rows in a fragment": lengths && `${lengths.min} to ${lengths.max}, ${lengths.mean} on average`,
        ...cacheFacts(cached),
      }),
    );
  },
});
