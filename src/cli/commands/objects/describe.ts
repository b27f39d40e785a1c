import {
  type DescribeNamespaceResponse,
  DescribeNamespaceResponseSchema,
  type DescribeTableResponse,
  DescribeTableResponseSchema,
  isNotFound,
} from "../../../client/exports.ts";
import { parsePath } from "../../../client/object-path.ts";
import { arrowTypeName } from "../../../client/rows/arrow-type-name.ts";
import { type TypeDescription, typeInWords } from "../../../client/rows/type-words.ts";
import { parseSwitch } from "../../../config/parsers.ts";
import { catalogCommand } from "../catalog-command.ts";
import { jsonOf } from "../message-json.ts";
import { textTable } from "../text-table.ts";

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
