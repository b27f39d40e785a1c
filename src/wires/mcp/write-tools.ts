import type { DataType, Field, Schema } from "apache-arrow";
import { z } from "zod";
import { NumberText, textOfJson } from "../../arrow/rows/json-text.ts";
import { LanceError } from "../../client/exports.ts";
import { parsePath, pathText } from "../../client/object-path.ts";
import { schemaForRows } from "../../client/rows/schema-for-rows.ts";
import { isNumberText } from "../../client/text/numbers.ts";
import { schemaOfText, textToArrow } from "../../client/text/text-to-arrow.ts";
import { TYPE_NAMES, typeOfName } from "../../client/text/type-names.ts";
import { objectText } from "./bounded-text.ts";
import { defineTool, INPUTS } from "./tool.ts";

/** Most rows that a call writes. */
const MAX_WRITTEN_ROWS = 10_000;

const { table } = INPUTS;

const rows = z.array(z.record(z.string(), z.unknown())).max(MAX_WRITTEN_ROWS);

const round = z
  .boolean()
  .default(false)
  .describe("Round numbers to what floating-point columns hold, instead of refusing those with more digits.");

const EXACT =
  "Write integers beyond 2^53 and decimals of more than 15 digits as strings, times as ISO 8601, bytes as base64. Values are stored exactly or refused, all rows or none; errors name rows as lines.";

const condition = z
  .string()
  .min(1)
  .describe('SQL condition for the rows to change, such as "id = 7". "true" is all rows.');

const createNamespace = defineTool({
  name: "create_namespace",
  title: "Create a namespace",
  description: "Creates a namespace, which may contain tables and further namespaces.",
  input: z.strictObject({ namespace: z.string().min(1).describe('Path, such as "sales/2026".') }),
  effect: "adds",
  async run({ namespace: path }, { namespace, signal }) {
    const id = parsePath(path);
    await namespace.createNamespace({ id }, { signal });
    return objectText({ created: pathText(id) });
  },
});

const createTable = defineTool({
  name: "create_table",
  title: "Create a table",
  description: `Creates a table with rows, or an empty one with the types of its columns. The narrowest type that holds all its values is the type of a column unless types names another; a list of numbers of equal length becomes a vector. It fails if the table exists. ${EXACT}`,
  input: z.strictObject({
    table,
    rows: rows.default([]),
    types: z
      .record(z.string(), z.string())
      .default({})
      .describe(
        `Types by column, each one of: ${TYPE_NAMES.join(", ")}; other numbers in parentheses are possible.`,
      ),
    round,
  }),
  effect: "adds",
  async run({ table: path, rows, types, round: isRounded }, { namespace, signal }) {
    if (rows.length === 0 && Object.keys(types).length === 0)
      throw new LanceError("InvalidInput", "a table requires rows or column types");
    const id = parsePath(path);
    const data = await rowsToArrow(rows, { types, isRounded });
    const { version } = await namespace.createTable({ id, mode: "create" }, data, { signal });
    return objectText({ created: pathText(id), rows: rows.length, version });
  },
});

const insertRows = defineTool({
  name: "insert_rows",
  title: "Insert rows",
  description: `Adds rows to a table. Columns that a row leaves out are null. ${EXACT}`,
  input: z.strictObject({ table, rows: rows.min(1), round }),
  effect: "adds",
  async run({ table: path, rows, round: isRounded }, { namespace, signal }) {
    const id = parsePath(path);
    const schema = await schemaForRows(namespace, id, signal);
    const data = await rowsToArrow(rows, { schema, isRounded });
    const { version } = await namespace.insertIntoTable({ id, mode: "append" }, data, { signal });
    return objectText({ inserted: rows.length, version });
  },
});

const updateRows = defineTool({
  name: "update_rows",
  title: "Update rows",
  description:
    "Sets columns of the rows that match a condition. Values are SQL expressions, evaluated for each row.",
  input: z.strictObject({
    table,
    filter: condition,
    set: z
      .record(z.string(), z.string().min(1))
      .describe('SQL expressions by column, such as {"price": "price * 2", "name": "\'new\'"}.'),
  }),
  effect: "changes",
  async run({ table: path, filter, set }, { namespace, signal }) {
    const updates = Object.entries(set).map(([column, expression]) => ({ column, expression }));
    if (updates.length === 0) throw new LanceError("InvalidInput", "set has no columns");
    const request = { id: parsePath(path), predicate: filter, updates };
    const { updatedRows, version } = await namespace.updateTable(request, { signal });
    return objectText({ updated: updatedRows, version });
  },
});

const deleteRows = defineTool({
  name: "delete_rows",
  title: "Delete rows",
  description: "Deletes the rows that match a condition. Count them with count_rows first.",
  input: z.strictObject({ table, filter: condition }),
  effect: "changes",
  async run({ table: path, filter }, { namespace, signal }) {
    const request = { id: parsePath(path), predicate: filter };
    const { numDeletedRows, version } = await namespace.deleteFromTable(request, { signal });
    return objectText({ deleted: numDeletedRows, version });
  },
});

const dropTable = defineTool({
  name: "drop_table",
  title: "Drop a table",
  description: "Removes a table with all its rows and versions. It cannot be undone.",
  input: z.strictObject({ table }),
  effect: "changes",
  async run({ table: path }, { namespace, signal }) {
    const id = parsePath(path);
    await namespace.dropTable({ id }, { signal });
    return objectText({ dropped: pathText(id) });
  },
});

const VECTOR_INDICES = ["IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ"] as const;

const createIndex = defineTool({
  name: "create_index",
  title: "Create an index",
  description:
    "Builds an index of a column: FTS for words, which a text search requires; BTREE for ranges and BITMAP for few different values, which make filters fast; IVF_… for many vectors. describe_table shows it when it is there.",
  input: z.strictObject({
    table,
    column: z.string().min(1),
    type: z.enum(["FTS", "BTREE", "BITMAP", ...VECTOR_INDICES]),
    distance_type: z
      .enum(["l2", "cosine", "dot"])
      .optional()
      .describe("Distance of an index of vectors. Default: l2."),
  }),
  effect: "adds",
  async run({ table: path, column, type, distance_type: distanceType }, { namespace, signal }) {
    const request = { id: parsePath(path), column, indexType: type };
    if (VECTOR_INDICES.some((each) => each === type))
      await namespace.createTableIndex({ ...request, distanceType }, { signal });
    else if (distanceType === undefined) await namespace.createTableScalarIndex(request, { signal });
    else throw new LanceError("InvalidInput", `an index of type ${type} has no distance_type`);
    return objectText({ indexed: column, type });
  },
});

/** Tools that change data. */
export const WRITE_TOOLS = [
  ...[createNamespace, createTable, insertRows, updateRows, deleteRows],
  ...[createIndex, dropTable],
];

/** A row as a tool receives it. */
export type JsonRow = Readonly<Record<string, unknown>>;

/** How rows become Arrow. */
export interface JsonRowsOptions {
  /** Schema of the table. Default: the rows determine it. */
  readonly schema?: Schema | undefined;
  /** Types of columns by name, as `lance-gateway import --type` names them. Default: the narrowest that hold all values. */
  readonly types?: Readonly<Record<string, string>> | undefined;
  /** Whether numbers are rounded to what floating-point columns hold. Default: they are refused. */
  readonly isRounded?: boolean | undefined;
}

/** Digits that every decimal number keeps as a JSON number; more may have been lost before a tool receives it. */
const KEPT_DIGITS = 15;

/**
 * Returns the Arrow IPC stream of rows, as the import of JSON lines makes it: each row is a line. Strings with numbers are also numbers where the
 * type of a column is an integer or a decimal.
 *
 * @throws LanceError InvalidInput for values that their columns do not hold exactly.
 */
export async function rowsToArrow(
  rows: readonly JsonRow[],
  { schema, types = {}, isRounded = false }: JsonRowsOptions,
): Promise<AsyncIterable<Uint8Array>> {
  const arrow = await import("apache-arrow");
  const chosen = new Map(Object.entries(types).map(([name, type]) => [name, typeOfName(arrow, type)]));
  const fields = schema?.fields ?? [...chosen].map(([name, type]) => new arrow.Field(name, type, true));
  const toExact = createExact(arrow.DataType, fields);
  const text = Buffer.from(rows.map((row, index) => `${textOfJson(toExact(row, index))}\n`).join(""));
  const open = async function* () {
    yield text;
  };
  const options = { format: "jsonl", types: chosen, isRounded } as const;
  const target =
    schema ?? (rows.length === 0 ? new arrow.Schema([...fields]) : await schemaOfText(open, options));
  return textToArrow(open, target, { ...options, isForTable: schema !== undefined || rows.length === 0 });
}

/** Creates the function that gives the numbers of rows the digits that were sent. */
function createExact(Is: typeof DataType, fields: readonly Field[]) {
  const types = new Map(fields.map(({ name, type }) => [name, type]));

  function exact(value: unknown, type: DataType | undefined): unknown {
    if (typeof value === "number") {
      if (isExact(value, Is.isDecimal(type))) return value;
      throw new Error(`a number such as ${value} may have lost digits on its way; send it as a string`);
    }
    if (typeof value === "string")
      return (Is.isInt(type) || Is.isDecimal(type)) && isNumberText(value) ? new NumberText(value) : value;
    if (Array.isArray(value)) return value.map((item) => exact(item, type?.children?.[0]?.type));
    if (typeof value !== "object" || value === null) return value;
    const typeOf = (name: string) =>
      (type?.children as readonly Field[] | undefined)?.find((child) => child.name === name)?.type;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, exact(item, typeOf(name))]));
  }

  return (row: JsonRow, index: number) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => {
        try {
          return [name, exact(value, types.get(name))];
        } catch (cause) {
          const { message } = cause as Error;
          const place = `line ${index + 1}, column ${JSON.stringify(name)}`;
          throw new LanceError("InvalidInput", `${place}: ${message}`, { cause });
        }
      }),
    );
}

/** Whether a number certainly has the digits that were sent. */
function isExact(value: number, isDecimal: boolean): boolean {
  if (Number.isInteger(value)) return Number.isSafeInteger(value);
  if (!isDecimal) return true;
  const digits = String(value)
    .replace(/e.*$/, "")
    .replaceAll(/^-?0*\.?0*|\./g, "");
  return digits.length <= KEPT_DIGITS;
}
