import { z } from "zod";
import { LanceError } from "../../client/exports.ts";
import { parsePath, pathText } from "../../client/object-path.ts";
import { schemaForRows } from "../../client/rows/schema-for-rows.ts";
import { TYPE_NAMES } from "../../client/text/type-names.ts";
import { objectText } from "./bounded-text.ts";
import { INPUTS } from "./inputs.ts";
import { rowsToArrow } from "./rows-to-arrow.ts";
import { defineTool } from "./tool.ts";

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
