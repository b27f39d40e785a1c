import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectMcp, MCP_ERAS, type McpClient, ToolFailure } from "../support/mcp-client.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

/** Rows that the tests query: the vectors are points of a line, and the words differ. */
const NOTES = [
  { id: 1, text: "red apple", price: "1.10", vector: [1, 0] },
  { id: 2, text: "green apple", price: "2.20", vector: [2, 0] },
  { id: 3, text: "red brick", price: "3.30", vector: [3, 0] },
];

const READS = [
  "list_namespaces",
  "list_tables",
  "describe_table",
  "sample_rows",
  "query_table",
  "count_rows",
  "run_sql",
];
const WRITES = [
  "create_namespace",
  "create_table",
  "insert_rows",
  "update_rows",
  "delete_rows",
  "create_index",
  "drop_table",
];

async function failureOf(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    (value) => assert.fail(`the call succeeds: ${value}`),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ToolFailure, String(error));
  return error.message;
}

describe.each(MCP_ERAS)("an agent of the %s protocol at a directory", (era) => {
  let server: DirectoryServer;
  let agent: McpClient;
  beforeAll(async () => {
    server = await startDirectoryServer({ mcpWrites: true });
    agent = await connectMcp(server.port, {}, { era });
    await agent.call("create_namespace", { namespace: "shop" });
    await agent.call("create_table", { table: "shop/notes", rows: NOTES, types: { price: "decimal(10,2)" } });
  });
  afterAll(async () => {
    await agent[Symbol.asyncDispose]();
    await server.close();
  });

  test("sees tools with descriptions, schemas and hints about their effect", async () => {
    const { tools } = await agent.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([...READS, ...WRITES]);
    for (const { name, description = "", inputSchema, annotations } of tools) {
      assert.ok(description.length > 20, name);
      assert.equal(inputSchema.type, "object");
      // Statements of an agent that may write do so, too.
      const destroys = ["update_rows", "delete_rows", "drop_table", "run_sql"].includes(name);
      assert.equal(annotations?.readOnlyHint, READS.includes(name) && !destroys);
      assert.equal(annotations?.destructiveHint, destroys);
    }
    assert.match(agent.client.getInstructions() ?? "", /list_tables/);
  });

  test("lists namespaces and tables page by page", async () => {
    await agent.call("create_namespace", { namespace: "shop/old" });
    expect(await agent.json("list_namespaces", { namespace: "shop" })).toEqual({ namespaces: ["old"] });
    for (const table of ["a", "b", "c"])
      await agent.call("create_table", { table: `shop/old/${table}`, types: { id: "int64" } });
    const first = await agent.json("list_tables", { namespace: "shop/old", limit: 2 });
    expect(first["tables"]).toEqual(["a", "b"]);
    const next = { namespace: "shop/old", limit: 2, page_token: first["next_page_token"] };
    expect(await agent.json("list_tables", next)).toEqual({ tables: ["c"] });
  });

  test("describes a table", async () => {
    const described = await agent.json("describe_table", { table: "shop/notes" });
    expect(described).toMatchObject({
      table: "shop/notes",
      row_count: 3,
      columns: [
        { name: "id", type: "int64" },
        { name: "text", type: expect.stringMatching(/^(?:utf8|string)$/) },
        { name: "price", type: expect.stringMatching(/^decimal128.*10/) },
        { name: "vector", type: "fixed_size_list<float32, 2>" },
      ],
      indices: [],
    });
    expect(described["versions"]).toMatchObject([{ version: described["version"] }]);
  });

  test("samples, filters, orders and counts rows", async () => {
    expect((await agent.json("sample_rows", { table: "shop/notes", limit: 1 }))["rows"]).toEqual([
      { id: 1, text: "red apple", price: 1.1, vector: [1, 0] },
    ]);
    const query = {
      ...{ table: "shop/notes", filter: "text LIKE 'red%'", columns: ["id"] },
      order_by: [{ column: "id", descending: true }],
    };
    expect(await agent.json("query_table", query)).toEqual({ row_count: 2, rows: [{ id: 3 }, { id: 1 }] });
    const cut = await agent.json("query_table", { ...query, limit: 1 });
    expect(cut["note"]).toMatch(/offset 1 continues/);
    expect((await agent.json("query_table", { ...query, offset: 1 }))["rows"]).toEqual([{ id: 1 }]);
    expect(await agent.json("count_rows", { table: "shop/notes", filter: "id > 1" })).toEqual({
      row_count: 2,
    });
  });

  test("runs statements in SQL, whose rows it bounds", async () => {
    const grouped =
      "SELECT split_part(text, ' ', 1) AS colour, sum(price) AS price FROM shop.notes GROUP BY colour ORDER BY colour";
    expect(await agent.json("run_sql", { statement: grouped })).toEqual({
      row_count: 2,
      rows: [
        { colour: "green", price: 2.2 },
        { colour: "red", price: 4.4 },
      ],
    });
    const many = await agent.json("run_sql", { statement: "SELECT * FROM range(1000000)", limit: 2 });
    expect(many).toMatchObject({ row_count: 2, note: "cut after 2 rows; ask for fewer, or aggregate" });
    const wide = await agent.json("run_sql", {
      statement: "SELECT repeat('x', 1000) AS x FROM range(1000)",
      limit: 1000,
    });
    expect(wide["note"]).toMatch(
      /^cut after 6\d rows, because a result has at most 65536 bytes; ask for fewer columns or rows$/,
    );
    const written = "CREATE TABLE shop.cheap AS SELECT id FROM shop.notes WHERE price < 3";
    expect(await agent.json("run_sql", { statement: written })).toMatchObject({ row_count: 1 });
    await agent.json("run_sql", { statement: "DROP TABLE shop.cheap" });
    for (const statement of [
      "ALTER TABLE shop.notes DROP COLUMN id",
      "SELECT * FROM read_csv('/etc/passwd')",
    ])
      expect(await failureOf(agent.call("run_sql", { statement }))).toMatch(/^Unsupported/);
    expect(await failureOf(agent.call("run_sql", { statement: "SELECT * FROM shop.missing" }))).toMatch(
      /^TableNotFound/,
    );
  });

  test("finds neighbours of a vector, words, and both together", async () => {
    const index = { table: "shop/notes", column: "text", type: "FTS" };
    const wrong = failureOf(agent.call("create_index", { ...index, distance_type: "l2" }));
    assert.match(await wrong, /^InvalidInput: .*FTS has no distance_type/);
    expect(await agent.json("create_index", index)).toEqual({ indexed: "text", type: "FTS" });
    await expect
      .poll(async () => (await agent.json("describe_table", { table: "shop/notes" }))["indices"])
      .toMatchObject([{ columns: ["text"], unindexed_rows: 0 }]);
    const ids = async (input: object) => {
      const { rows } = await agent.json("query_table", { table: "shop/notes", columns: ["id"], ...input });
      return (rows as { id: number }[]).map(({ id }) => id);
    };
    expect(await ids({ vector: [2.9, 0], limit: 2 })).toEqual([3, 2]);
    expect((await ids({ text: "apple" })).sort()).toEqual([1, 2]);
    expect(await ids({ text: "brick", text_columns: ["text"] })).toEqual([3]);
    expect((await ids({ text: "apple", vector: [3, 0], limit: 3 })).length).toBeGreaterThan(1);
  });

  test("inserts, updates and deletes rows, and drops the table", async () => {
    const table = "shop/changing";
    await agent.call("create_table", { table, types: { id: "int64", name: "string" } });
    const rows = [{ id: 1, name: "a" }, { id: "9007199254740993" }];
    expect(await agent.json("insert_rows", { table, rows })).toMatchObject({ inserted: 2 });
    assert.match(await agent.call("query_table", { table }), /"id":9007199254740993,"name":null/);
    const update = { table, filter: "id = 1", set: { name: "name || 'b'" } };
    expect(await agent.json("update_rows", update)).toMatchObject({ updated: 1 });
    expect((await agent.json("query_table", { table, filter: "id = 1" }))["rows"]).toEqual([
      { id: 1, name: "ab" },
    ]);
    expect(await agent.json("delete_rows", { table, filter: "id > 1" })).toMatchObject({ deleted: 1 });
    await agent.call("drop_table", { table });
    assert.match(
      await failureOf(agent.call("count_rows", { table })),
      /^TableNotFound: .*\nlist_tables shows/s,
    );
  });

  test("is told what is wrong with its input, and nothing is written", async () => {
    const table = "shop/notes";
    const insert = (row: object) => failureOf(agent.call("insert_rows", { table, rows: [row] }));
    assert.match(await insert({ id: 2 ** 53 }), /^InvalidInput: line 1, column "id": .* send it as a string/);
    assert.match(await insert({ price: 0.1234567890123456 }), /line 1, column "price": .*as a string/);
    assert.match(await insert({ nothing: 1 }), /^InvalidInput: the table has no column "nothing"/);
    assert.match(await insert({ id: "x" }), /^InvalidInput: .*line 1/);
    assert.match(await failureOf(agent.call("insert_rows", { table, rows: [] })), /rows/);
    assert.match(await failureOf(agent.call("query_table", { table, limt: 1 })), /limt/);
    assert.match(await failureOf(agent.call("query_table", { table, limit: 1_001 })), /limit/);
    assert.match(await failureOf(agent.call("query_table", { table, filter: "id >" })), /^InvalidInput: /);
    assert.match(await failureOf(agent.call("query_table", { table, columns: ["no"] })), /no/);
    for (const [unused, value] of [
      ["vector_column", "v"],
      ["distance_type", "l2"],
      ["text_columns", ["text"]],
    ] as const) {
      const failure = await failureOf(agent.call("query_table", { table, [unused]: value }));
      assert.match(failure, new RegExp(`^InvalidInput: ${unused} requires (vector|text)`));
    }
    assert.match(await failureOf(agent.call("create_table", { table, rows: NOTES })), /^TableAlreadyExists/);
    assert.match(
      await failureOf(agent.call("create_table", { table: "shop/empty" })),
      /^InvalidInput: a table requires/,
    );
    assert.equal((await agent.json("count_rows", { table }))["row_count"], 3);
    await assert.rejects(agent.call("no_such_tool"), /no_such_tool/);
  });

  test("gets long results in part, with a note", async () => {
    const table = "shop/long";
    const rows = Array.from({ length: 100 }, (_, id) => ({ id, text: "x".repeat(1_000) }));
    const wide = rows.map((row) => ({ ...row, wide: Array.from({ length: 16 }, (_, at) => at) }));
    await agent.call("create_table", { table, rows: wide });
    const found = await agent.json("query_table", { table, limit: 1_000 });
    const count = Number(found["row_count"]);
    assert.ok(count > 50 && count < 100, String(count));
    expect(found["note"]).toMatch(`offset ${count}`);
    expect(found["note"]).toMatch("left out long vectors: wide");
    const named = await agent.json("query_table", { table, columns: ["wide"], limit: 1 });
    expect((named["rows"] as { wide: number[] }[])[0]?.wide).toHaveLength(16);
    await agent.call("insert_rows", { table, rows: [{ id: 100, text: "y".repeat(70_000) }] });
    const one = await agent.json("query_table", { table, filter: "id = 100" });
    expect(one).toMatchObject({ row_count: 0, rows: [] });
    expect(one["note"]).toMatch("fewer columns");
  });
});

describe("an agent at a gateway that offers no writes", () => {
  test.each([{}, { mcpWrites: true, readOnly: true }])("sees tools that read (%o)", async (options) => {
    const server = await startDirectoryServer(options);
    await using agent = await connectMcp(server.port);
    const { tools } = await agent.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(READS);
    await assert.rejects(agent.call("drop_table", { table: "x" }), /drop_table/);
    const statement = "CREATE TABLE x AS SELECT 1 AS one";
    expect(await failureOf(agent.call("run_sql", { statement }))).toMatch(/^Unsupported/);
    await server.close();
  });

  test("finds nothing where MCP is turned off", async () => {
    const server = await startDirectoryServer({ noMcp: true });
    const { status } = await fetch(`http://127.0.0.1:${server.port}/mcp`, { method: "POST", body: null });
    assert.equal(status, 404);
    await server.close();
  });
});
