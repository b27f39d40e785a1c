import { z } from "zod";
import { parsePath } from "../../client/object-path.ts";
import { createQueryResult } from "../../client/rows/query-result.ts";
import { LanceError } from "../../namespace/errors.ts";
import { objectText, rowsText } from "./bounded-text.ts";
import { defineTool, INPUTS, MAX_ROWS, type Tool } from "./tool.ts";

const { table, columns, filter, version, branch } = INPUTS;

const VALUES =
  "Rows are JSON objects. 64-bit integers and decimals have all their digits, times are ISO 8601, bytes are base64. Vectors of more than 8 numbers are left out unless columns names them.";

const sampleRows = defineTool({
  name: "sample_rows",
  title: "Show some rows",
  description: `Returns the first rows of a table, to see what its values look like. ${VALUES}`,
  input: z.strictObject({
    table,
    columns,
    limit: z.int().min(1).max(100).default(5).describe("Number of rows."),
    version,
    branch,
  }),
  effect: "reads",
  async run({ table: path, columns, limit, version, branch }, { namespace, signal }) {
    const request = { id: parsePath(path), columns, k: limit, version, branch };
    return await rowsText(namespace.queryTable(request, { signal }), { columns, limit, offset: 0 });
  },
});

const queryTable = defineTool({
  name: "query_table",
  title: "Query a table",
  description: `Returns rows of a table: all of them, those that match a filter, the nearest neighbours of a vector, those that contain words, or, with a vector and a text together, the best of both (hybrid search). ${VALUES} There is no SQL beside the filter: no joins, groups or aggregates. Use count_rows to count.`,
  input: z.strictObject({
    table,
    filter,
    columns,
    limit: z.int().min(1).max(MAX_ROWS).default(20).describe("Maximum number of rows."),
    offset: z.int().min(0).default(0).describe("Number of rows to skip."),
    order_by: z
      .array(
        z.strictObject({
          column: z.string().min(1),
          descending: z.boolean().default(false),
          nulls_first: z.boolean().optional(),
        }),
      )
      .optional()
      .describe("Order of the rows. Not for searches, whose order is the match."),
    vector: z
      .array(z.number())
      .min(1)
      .optional()
      .describe("Vector whose nearest neighbours to find, as long as those of the column."),
    vector_column: z.string().min(1).optional().describe("Column of vectors. Default: the only one."),
    distance_type: z
      .enum(["l2", "cosine", "dot", "hamming"])
      .optional()
      .describe("Distance of vectors. Default: that of the index, or else l2."),
    text: z.string().min(1).optional().describe("Words to find in columns with a text index."),
    text_columns: z
      .array(z.string())
      .min(1)
      .optional()
      .describe("Columns in which to find the words. Default: all with a text index."),
    with_row_id: z.boolean().default(false).describe("Add the column _rowid."),
    version,
    branch,
  }),
  effect: "reads",
  async run(input, { namespace, signal }) {
    const { columns, limit, offset, vector, text, text_columns: textColumns } = input;
    refuseUnused(vector, "vector", {
      vector_column: input.vector_column,
      distance_type: input.distance_type,
    });
    refuseUnused(text, "text", { text_columns: textColumns });
    const request = {
      id: parsePath(input.table),
      filter: input.filter,
      columns,
      k: limit,
      offset: offset === 0 ? undefined : offset,
      orderBy: (input.order_by ?? []).map(({ column, descending, nulls_first: nullsFirst }) => ({
        columnName: column,
        ascending: !descending,
        nullsFirst,
      })),
      vector,
      vectorColumn: input.vector_column,
      distanceType: input.distance_type,
      fullTextQuery:
        text === undefined ? undefined : { stringQuery: { query: text, columns: textColumns ?? [] } },
      withRowId: input.with_row_id ? true : undefined,
      version: input.version,
      branch: input.branch,
    };
    return await rowsText(namespace.queryTable(request, { signal }), { columns, limit, offset });
  },
});

/**
 * Refuses details of a search that the input does not ask for: the rows would be those of a scan.
 *
 * @throws LanceError InvalidInput
 */
function refuseUnused(wanted: unknown, name: string, details: Readonly<Record<string, unknown>>): void {
  if (wanted !== undefined) return;
  const unused = Object.keys(details).find((each) => details[each] !== undefined);
  if (unused !== undefined) throw new LanceError("InvalidInput", `${unused} requires ${name}`);
}

const countRows = defineTool({
  name: "count_rows",
  title: "Count rows",
  description: "Counts the rows of a table, or those that match a filter.",
  input: z.strictObject({ table, filter, version, branch }),
  effect: "reads",
  async run({ table: path, filter, version, branch }, { namespace, signal }) {
    const request = { id: parsePath(path), predicate: filter, version, branch };
    const { count } = await namespace.countTableRows(request, { signal });
    return objectText({ row_count: count });
  },
});

const QUERIES = "It reads only: SELECT, WITH, VALUES, DESCRIBE, SUMMARIZE, EXPLAIN and SHOW TABLES.";
const STATEMENTS =
  "SELECT, WITH, VALUES, DESCRIBE, SUMMARIZE, EXPLAIN and SHOW TABLES read; INSERT, UPDATE, DELETE, CREATE TABLE, DROP TABLE, CREATE VIEW and DROP VIEW write, and return the number of rows as Count; so do CREATE, REFRESH and DROP MATERIALIZED VIEW.";

/** Returns the tool for SQL. @param writes whether its statements may change tables */
export function sqlTool(writes: boolean): Tool {
  return defineTool({
    name: "run_sql",
    title: writes ? "Run a statement in SQL" : "Run a query in SQL",
    description: `Runs a statement in the SQL of DuckDB over tables: joins, groups, aggregates and windows. ${writes ? STATEMENTS : QUERIES} A table is named by its namespace: people in the root, team.people, or "team$eu".people for the namespace eu in team. ${VALUES} For a search by vector or text alone, and for lookups by a filter, query_table is faster; to join or group what a search finds, read lance_vector_search('team.people', 'vector column', [0.1, 0.2], k = 10) or lance_fts('team.people', 'text column', 'words', k = 10) behind FROM.`,
    input: z.strictObject({
      statement: z.string().min(1).describe("One statement."),
      limit: z.int().min(1).max(MAX_ROWS).default(100).describe("Maximum number of rows that are returned."),
    }),
    effect: writes ? "changes" : "reads",
    async run({ statement, limit }, { namespace, sql, signal }) {
      if (sql === undefined) throw new LanceError("Unsupported", "there is no SQL here");
      const ending = new AbortController();
      const either = AbortSignal.any([signal, ending.signal]);
      try {
        const result = createQueryResult(() => sql(statement, namespace, either));
        return await rowsText(result, { columns: undefined, limit, offset: 0, isCut: true });
      } finally {
        ending.abort();
      }
    },
  });
}

/** Tools that read rows. */
export const ROW_TOOLS = [sampleRows, queryTable, countRows];
