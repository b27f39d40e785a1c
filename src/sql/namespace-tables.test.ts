import assert from "node:assert/strict";
import * as arrow from "apache-arrow";
import { afterAll, beforeAll, test } from "vitest";
import { runSql } from "../../test/fixtures/sql.ts";
import { temporaryDirectory } from "../../test/support/directory.ts";
import { tableOf } from "../../test/support/every-type.ts";
import { textOfJson } from "../arrow/rows/json-text.ts";
import { createTextReader } from "../arrow/rows/row-texts.ts";
import { connect, LanceError } from "../client/index.ts";
import type { Namespace } from "../client/namespace.ts";
import { createSqlEngine } from "./create-engine.ts";
import { createKnownTables, tablesOfNamespace } from "./namespace-tables.ts";
import { writesToNamespace } from "./namespace-writes.ts";
import type { SqlTable } from "./sql-engine.ts";

const engine = createSqlEngine();
let namespace: Namespace;
let remove: () => Promise<void>;

beforeAll(async () => {
  const directory = await temporaryDirectory();
  remove = directory.remove;
  namespace = await connect("dir", { root: directory.path });
  const people = [1, 2, 3, 4].map((id) => ({ id, name: `name ${id}`, vector: [id, id / 2] }));
  await namespace.createTable("people", people);
  await namespace.deleteFromTable({ id: ["people"], predicate: "id = 2" });
  await namespace.updateTable({
    id: ["people"],
    updates: [{ column: "name", expression: "'changed'" }],
    predicate: "id = 3",
  });
  await namespace.createTableBranch({ id: ["people"], name: "trial" });
  await namespace.deleteFromTable({ id: ["people"], branch: "trial", predicate: "id = 4" });
  await namespace.createNamespace({ id: ["team"] });
  await namespace.createTable({ id: ["team", "types"] }, tableOf(STORED) as never);
});

afterAll(async () => {
  await engine.close();
  await namespace.close();
  await remove();
});

/** Columns of every kind that a table stores and SQL reads. */
const STORED = [
  ...[
    "bool",
    "int8",
    "int64",
    "uint64",
    "float16",
    "float64",
    "decimal128",
    "text",
    "large_text",
    "bytes",
    "fixed_bytes",
  ],
  ...[
    "day_in_millis",
    "time_us",
    "time_ns",
    "list",
    "list_of_lists",
    "vector",
    "struct",
    "list_of_structs",
    "kept_once",
  ],
];

function textsOf(table: arrow.Table): readonly string[] {
  const read = createTextReader(arrow);
  return table.batches
    .flatMap((batch) => [...read(batch)])
    .map(textOfJson)
    .sort();
}

const sql = (statement: string) => runSql(engine, statement, { tables: tablesOfNamespace(namespace) });

/** States of a table by SQL and by a query. */
const STATES = [
  ["FROM people", {}],
  ["FROM people AT (VERSION => 1)", { version: 1 }],
  ["FROM people AT (VERSION => 2)", { version: 2 }],
  ["FROM people AT (VERSION => 'trial')", { branch: "trial" }],
] as const;

test.each(STATES)("%s has the rows that a query of the table returns", async (statement, state) => {
  const expected = await namespace.queryTable({ id: ["people"], ...state }).toTable();
  const found = await sql(statement);
  assert.ok(found.numRows > 0);
  assert.deepEqual(textsOf(found), textsOf(expected));
});

test.each(STORED.filter((name) => name !== "float16"))(
  "a stored column of type %s has the values of a query",
  async (name) => {
    const columns = { columnNames: [name] };
    const expected = await namespace.queryTable({ id: ["team", "types"], columns }).toTable();
    assert.deepEqual(textsOf(await sql(`SELECT ${name} FROM team.types`)), textsOf(expected));
  },
);

/** Columns whose stored form differs from the one that was written. */
const KEPT_OTHERWISE = {
  doc: [new arrow.Utf8(), ['{"a": 1}', "[]", null], { "ARROW:extension:name": "arrow.json" }],
  payload: [
    new arrow.LargeBinary(),
    [Buffer.from("first"), null, Buffer.alloc(100_000, 7)],
    { "lance-encoding:blob": "true" },
  ],
  at: [new arrow.TimestampMicrosecond("Europe/Berlin"), [0, 1_600_000_000_000, null], {}],
  kind: [new arrow.Dictionary(new arrow.Utf8(), new arrow.Int8()), ["x", "y", "x"], {}],
  price: [
    new arrow.Decimal(2, 20, 128),
    [Uint32Array.of(105, 0, 0, 0), null, Uint32Array.of(7, 0, 0, 0)],
    {},
  ],
  tags: [
    new arrow.List(
      new arrow.Field("item", new arrow.Struct([new arrow.Field("k", new arrow.Utf8(), true)]), true),
    ),
    [[{ k: "a" }, null], [], null],
    {},
  ],
} as const;

test.each(Object.entries(KEPT_OTHERWISE))(
  "a column %s has the values of a query after a deletion, an update and with a filter",
  async (name, [type, values, metadata]) => {
    const id = [`kept_${name}`];
    const field = new arrow.Field(name, type as arrow.DataType, true, new Map(Object.entries(metadata)));
    const schema = new arrow.Schema([new arrow.Field("id", new arrow.Int32(), true), field]);
    const data = [arrow.vectorFromArray([1, 2, 3], new arrow.Int32()), arrow.vectorFromArray(values, type)];
    const struct = arrow.makeData({
      type: new arrow.Struct(schema.fields),
      length: 3,
      nullCount: 0,
      children: data.map((vector) => vector.data[0] as arrow.Data),
    });
    const table = new arrow.Table([new arrow.RecordBatch(schema, struct)]);
    await namespace.createTable({ id }, table as never);
    await namespace.insertIntoTable({ id }, table as never);
    await namespace.deleteFromTable({ id, predicate: "id = 2" });
    const update = { updates: [{ column: "id", expression: "id + 10" }], predicate: "id = 3" };
    await namespace.updateTable({ id, ...update });
    for (const filter of ["id > 0", "id > 5"]) {
      const expected = await namespace.queryTable({ id, filter }).toTable();
      const found = await sql(`SELECT * FROM kept_${name} WHERE ${filter}`);
      assert.equal(found.numRows, filter === "id > 0" ? 4 : 2);
      assert.deepEqual(textsOf(found), textsOf(expected));
    }
  },
);

test("states of one table stand beside each other in a statement", async () => {
  const statement =
    "SELECT (SELECT count(*)::INTEGER FROM people) AS now, (SELECT count(*)::INTEGER FROM people AT (VERSION => 1)) AS before";
  assert.deepEqual((await sql(statement)).get(0)?.toJSON(), { now: 3, before: 4 });
});

test.each([
  ["FROM missing", "TableNotFound"],
  ["FROM missing.people", "TableNotFound|NamespaceNotFound"],
  ["FROM people AT (VERSION => 99)", "TableVersionNotFound"],
  ["FROM people AT (VERSION => 'missing')", "TableBranchNotFound"],
  ["FROM people AT (VERSION => 0.2)", "Unsupported"],
  ["FROM people AT (VERSION => 1.0)", "Unsupported"],
  ["FROM other.public.people", "Unsupported"],
])("%s is the catalog's %s", async (statement, kind) => {
  await assert.rejects(
    sql(statement),
    (thrown) => thrown instanceof LanceError && new RegExp(`^(?:${kind})$`).test(thrown.kind),
  );
});

test("a statement reads the version that a table had when it was prepared", async () => {
  await namespace.createTable("grows", [{ id: 1 }]);
  const tables = tablesOfNamespace(namespace);
  const { signal } = new AbortController();
  const prepared = await engine.prepare("SELECT count(*)::INTEGER AS n FROM grows", { tables, signal });
  await namespace.insertIntoTable({ id: ["grows"] }, [{ id: 2 }]);
  const messages: Uint8Array[] = [];
  for await (const message of prepared.run(undefined, signal)) messages.push(message);
  assert.equal(arrow.tableFromIPC(Buffer.concat(messages)).get(0)?.["n"], 1);
});

test("a table that takes the name of a dropped one is not read as that one, though it has its version", async () => {
  const tables = tablesOfNamespace(namespace);
  const sum = async () =>
    (await runSql(engine, "SELECT sum(id)::INTEGER AS s FROM again", { tables })).get(0)?.["s"];
  for (const id of [1, 2, 3]) {
    await namespace.createTable("again", [{ id }]);
    for (let i = 0; i < 4; i++) assert.equal(await sum(), id);
    await namespace.dropTable("again");
  }
  await assert.rejects(sum(), { kind: "TableNotFound" });
});

test("a table that is as it was is not described again, and may be read only by a caller who may read it", async () => {
  const asked: string[] = [];
  let isRefused = false;
  const watched = new Proxy(namespace, {
    get(target, name) {
      const own: unknown = Reflect.get(target, name);
      if (typeof own !== "function") return own;
      return (...args: readonly unknown[]) => {
        asked.push(String(name));
        if (isRefused && name === "countTableRows") throw new LanceError("PermissionDenied", "not any more");
        return own.apply(target, args);
      };
    },
  });
  const knownBy = createKnownTables();
  async function open(caller = "ada", database?: string) {
    asked.length = 0;
    const tables = tablesOfNamespace(watched, database, knownBy(caller, database));
    const name = { database: undefined, path: ["seen"], version: undefined, branch: undefined };
    return (await tables.open(name, new AbortController().signal)) as SqlTable;
  }
  const isDescribed = () => asked.includes("describeTable");

  await namespace.createTable("seen", [{ id: 1 }, { id: 2 }]);
  const first = await open();
  assert.ok(isDescribed());
  assert.deepEqual(await open(), first);
  assert.deepEqual(asked, ["describeTableVersion", "countTableRows"]);
  for (const [caller, database] of [["eve"], ["ada", "other"]] as const) {
    assert.deepEqual(await open(caller, database), first);
    assert.ok(isDescribed(), `${caller} in ${database}`);
  }

  await namespace.insertIntoTable({ id: ["seen"] }, [{ id: 3 }]);
  assert.deepEqual([(await open()).rows, isDescribed()], [3, true]);
  assert.deepEqual([(await open()).rows, isDescribed()], [3, false]);

  // Of the new table, the number of the version and of the rows are those of the old one.
  await namespace.dropTable({ id: ["seen"] });
  await namespace.createTable("seen", [{ name: "a" }, { name: "b" }]);
  await namespace.insertIntoTable({ id: ["seen"] }, [{ name: "c" }]);
  const { schema, rows } = await open();
  assert.deepEqual([rows, isDescribed()], [3, true]);
  assert.deepEqual(
    arrow.tableFromIPC(schema).schema.fields.map((field) => field.name),
    ["name"],
  );

  isRefused = true;
  await assert.rejects(open(), { kind: "PermissionDenied" });
});

test("lists tables with data, in the namespace of the statement or another one", async () => {
  await namespace.createNamespace({ id: ["listed"] });
  for (const name of ["b", "a"]) await namespace.createTable({ id: ["listed", name] }, [{ id: 1 }]);
  await namespace.declareTable({ id: ["listed", "declared"] });
  const names = async (statement: string, namespacePath: readonly string[] = []) => {
    const listed = await runSql(engine, statement, {
      ...{ tables: tablesOfNamespace(namespace), namespacePath },
      writes: writesToNamespace(namespace, { database: "lance" }),
    });
    return listed.toArray().map(({ name }) => name);
  };
  assert.deepEqual(await names("SHOW TABLES FROM listed"), ["a", "b"]);
  assert.deepEqual(await names("SHOW TABLES", ["listed"]), ["a", "b"]);
  const root = await names("SHOW TABLES");
  assert.ok(root.includes("people") && !root.includes("a"));
  assert.deepEqual(await names('show tables in "public";', ["listed"]), root);
  assert.deepEqual(await names("SHOW TABLES FROM lance.listed"), ["a", "b"]);
  assert.deepEqual(await names("SHOW TABLES FROM lance.public", ["listed"]), root);
  await assert.rejects(names("SHOW TABLES FROM missing"), /missing/);
  await assert.rejects(names("SHOW TABLES FROM other.listed"), /the database "other" cannot be named here/);
});

test("lists the names of a large namespace in their order, a page at a time", async () => {
  const name = (at: number) => `n${String(at).padStart(5, "0")}`;
  const read = { tables: 0, views: 0 };
  /** Returns the names of every tenth number, or of the others. */
  const page = (kind: "tables" | "views", { pageToken, limit }: { pageToken?: string; limit: number }) => {
    read[kind]++;
    const from = Number(pageToken ?? 0);
    const numbers = Array.from({ length: limit }, (_, i) => from + i);
    const own = numbers.filter((at) => (at % 10 === 0) === (kind === "views")).map(name);
    return { [kind]: own, ...(from < 20 * limit && { pageToken: String(from + limit) }) } as never;
  };
  const tables = tablesOfNamespace({
    ...(namespace as never as Parameters<typeof tablesOfNamespace>[0]),
    listTables: async (request) => page("tables", request as never),
    listViews: async (request) => page("views", request as never),
  });
  const call = { tables, signal: new AbortController().signal };
  const messages: Uint8Array[] = [];
  for await (const message of (await engine.prepare("SHOW TABLES", call)).run(undefined, call.signal)) {
    messages.push(message);
    if (messages.length === 2) assert.ok(read.tables < 5 && read.views < 5, JSON.stringify(read));
  }
  assert.ok(messages.length > 10);
  const listed = arrow
    .tableFromIPC(Buffer.concat(messages))
    .toArray()
    .map((row) => row.name);
  assert.deepEqual(
    listed,
    Array.from({ length: 21_000 }, (_, at) => name(at)),
  );
});

test("EXPLAIN ANALYZE is refused by name, as a word and as an option", async () => {
  for (const [head, position] of [
    ["EXPLAIN ANALYZE", 9],
    ["explain analyse", 9],
    ["EXPLAIN (ANALYZE)", 10],
    ["EXPLAIN ( analyze true, FORMAT JSON)", 11],
    ["EXPLAIN (FORMAT JSON, ANALYZE)", 23],
  ] as const)
    await assert.rejects(
      runSql(engine, `${head} SELECT 1`),
      (error) =>
        error instanceof LanceError &&
        error.kind === "Unsupported" &&
        error.message.startsWith(`EXPLAIN ANALYZE is not supported at position ${position};`),
      head,
    );
  const rows = await runSql(engine, "EXPLAIN (SELECT 1)");
  assert.equal(rows.numRows, 1);
});

test("shows the plan of a query as text or as JSON, and reads no rows for it", async () => {
  const inner = tablesOfNamespace(namespace);
  const tables = { ...inner, scan: () => assert.fail("rows are read") };
  const plan = async (head: string) => {
    const rows = await runSql(engine, `${head} SELECT max(id) FROM people WHERE id > 1`, { tables });
    assert.deepEqual(
      rows.schema.fields.map(({ name }) => name),
      ["explain_key", "explain_value"],
    );
    return String(rows.getChild("explain_value")?.get(0));
  };
  assert.match(await plan("EXPLAIN"), /AGGREGATE.*LANCE_GATEWAY_SCAN/s);
  assert.match(await plan("explain (format text)"), /AGGREGATE/);
  assert.equal(JSON.parse(await plan("EXPLAIN (FORMAT JSON)")).length, 1);
  const parameters = arrow.tableToIPC(arrow.tableFromArrays({ 1: ["somebody"] }), "stream");
  const text = "EXPLAIN SELECT id FROM people WHERE name = ?";
  const given = await runSql(engine, text, { tables, parameters });
  assert.match(String(given.getChild("explain_value")?.get(0)), /somebody/);
  await assert.rejects(runSql(engine, text, { tables }), /the statement has 1 parameters, and none is given/);
});
