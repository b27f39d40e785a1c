import assert from "node:assert/strict";
import * as arrow from "apache-arrow";
import { afterAll, beforeAll, beforeEach, test } from "vitest";
import { runSql } from "../../../test/fixtures/sql.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { connect } from "../../client/index.ts";
import type { Namespace } from "../../client/namespace.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createSqlEngine } from "../create-engine.ts";
import { tablesOfNamespace } from "../namespace-tables.ts";
import { writesToNamespace } from "../namespace-writes.ts";

const engine = createSqlEngine();
let namespace: Namespace;
let remove: () => Promise<void>;

beforeAll(async () => {
  const directory = await temporaryDirectory();
  remove = directory.remove;
  namespace = await connect("dir", { root: directory.path });
  await namespace.createNamespace({ id: ["team"] });
});

afterAll(async () => {
  await engine.close();
  await namespace.close();
  await remove();
});

beforeEach(async () => {
  await sql(
    "CREATE OR REPLACE TABLE people AS SELECT range::INTEGER AS id, 'name ' || range AS name, range / 2 AS half FROM range(1, 5)",
  );
});

const run = (statement: string, parameters?: readonly unknown[], namespacePath: string[] = []) =>
  runSql(engine, statement, {
    tables: tablesOfNamespace(namespace),
    writes: writesToNamespace(namespace),
    namespacePath,
    ...(parameters && { parameters: rowOf(parameters) }),
  });
const rowOf = (values: readonly unknown[]) =>
  arrow.tableToIPC(
    new arrow.Table(Object.fromEntries(values.map((value, i) => [i, arrow.vectorFromArray([value])]))),
    "stream",
  );
/** Runs a statement that changes rows, and returns their number. */
const sql = async (statement: string, parameters?: readonly unknown[]) =>
  (await run(statement, parameters)).get(0)?.["Count"] as bigint;
const rowsOf = async (statement: string) =>
  (await run(statement)).toArray().map((row) => Object.values(row.toJSON()));
const refused = (kind: string, text: RegExp) => (thrown: unknown) => {
  assert.ok(thrown instanceof LanceError, String(thrown));
  assert.match(thrown.message, text);
  assert.equal(thrown.kind, kind);
  return true;
};

test("inserts rows by the places of their values, or by names of columns", async () => {
  assert.equal(await sql("INSERT INTO people VALUES (10, 'ten', 5), (11, 'eleven', 5.5);"), 2n);
  assert.equal(
    await sql("insert into public.people (NAME, id) SELECT 'n' || id, id + 100 FROM people WHERE id > 9"),
    2n,
  );
  assert.deepEqual(await rowsOf("FROM people WHERE id > 9 ORDER BY id"), [
    [10, "ten", 5],
    [11, "eleven", 5.5],
    [110, "n10", null],
    [111, "n11", null],
  ]);
});

test("inserts rows of parameters", async () => {
  assert.equal(await sql("INSERT INTO people VALUES (?, ?, ?)", [7, "seven", 3.5]), 1n);
  assert.equal(
    await sql("INSERT INTO people (id, name) SELECT $1, name FROM people WHERE id = $2", [8, 7]),
    1n,
  );
  assert.deepEqual(await rowsOf("FROM people WHERE id > 6 ORDER BY id"), [
    [7, "seven", 3.5],
    [8, "seven", null],
  ]);
});

test("inserts a row for each row of parameters, all or none", async () => {
  const statement = "INSERT INTO people (id, name) VALUES ($1, 'p' || $1)";
  const insertRows = (parameters: Uint8Array) =>
    runSql(engine, statement, {
      tables: tablesOfNamespace(namespace),
      writes: writesToNamespace(namespace),
      parameters,
    });
  const insert = (ids: readonly unknown[]) => {
    const type = typeof ids[0] === "string" ? new arrow.Utf8() : new arrow.Int32();
    return insertRows(arrow.tableToIPC(new arrow.Table({ id: arrow.vectorFromArray(ids, type) }), "stream"));
  };
  assert.equal((await insert([7, 8, 9])).get(0)?.["Count"], 3n);
  assert.deepEqual(await rowsOf("SELECT name FROM people WHERE id > 6 ORDER BY id"), [
    ["p7"],
    ["p8"],
    ["p9"],
  ]);
  const none = arrow.tableToIPC(
    new arrow.Table({ id: arrow.vectorFromArray([], new arrow.Int32()) }),
    "stream",
  );
  assert.equal((await insertRows(none)).get(0)?.["Count"], 0n);
  await assert.rejects(insert(["10", "x"]), refused("InvalidInput", /Could not convert/));
  assert.deepEqual(await rowsOf("SELECT count(*)::INTEGER FROM people"), [[7]]);
});

test("an insert that fails on its way changes nothing", async () => {
  const statement = "INSERT INTO people (id) SELECT (range * 1000000)::BIGINT FROM range(100000)";
  await assert.rejects(sql(statement), refused("InvalidInput", /out of range/));
  assert.deepEqual(await rowsOf("SELECT count(*)::INTEGER FROM people"), [[4]]);
});

test.each([
  ["INSERT INTO people VALUES (1)", "InvalidInput", /same number of result columns/],
  ["INSERT INTO people VALUES (1, 'a', 2, 3)", "InvalidInput", /same number of result columns/],
  ["INSERT INTO people (id, ID) VALUES (1, 2)", "InvalidInput", /twice/],
  ["INSERT INTO people (age) VALUES (1)", "InvalidInput", /no column "age"/],
  ["INSERT INTO people (id) VALUES ('x')", "InvalidInput", /Could not convert/],
  ["INSERT INTO missing VALUES (1)", "TableNotFound", /missing/],
  ["INSERT INTO other.public.people VALUES (1)", "Unsupported", /database "other"/],
  [
    "INSERT INTO people SELECT * FROM read_csv('/etc/passwd')",
    "Unsupported",
    /read_csv is not supported at position 34/,
  ],
  [
    "INSERT INTO people VALUES (1); DROP TABLE people",
    "Unsupported",
    /statement is not supported|one statement/,
  ],
  ["INSERT INTO people VALUES (", "InvalidInput", /at position 28/],
  ["INSERT people VALUES (1)", "InvalidInput", /at position 8: INTO is expected, and "people" is there/],
  ["CREATE TABLE people AS SELECT 1 AS id", "TableAlreadyExists", /people/],
  ["CREATE TABLE people (id INTEGER)", "TableAlreadyExists", /people/],
  ["CREATE TABLE n (id INTEGER PRIMARY KEY)", "Unsupported", /"PRIMARY".*position 28/],
  ["CREATE TABLE n (id INTEGER DEFAULT 1)", "Unsupported", /"DEFAULT"/],
  ["CREATE TABLE n (id secret_type)", "Unsupported", /secret_type/],
  ["CREATE TABLE n (id INTEGER + 1)", "Unsupported", /"\+"/],
  ["CREATE TABLE n (id INTEGER, ID INTEGER)", "InvalidInput", /"ID" twice/],
  ["CREATE SCHEMA s", "Unsupported", /CREATE of "SCHEMA"/],
  ["CREATE TEMP TABLE n (id INTEGER)", "Unsupported", /CREATE of "TEMP"/],
  ["DROP SCHEMA team", "Unsupported", /DROP of "SCHEMA"/],
  ["DROP TABLE missing", "TableNotFound", /missing/],
  ["DROP TABLE people CASCADE", "InvalidInput", /the end of the statement is expected/],
  ["DROP TABLE people; DROP TABLE people", "InvalidInput", /the end of the statement is expected/],
] as const)("refuses %s", async (statement, kind, text) => {
  const before = await rowsOf("FROM people ORDER BY id");
  await assert.rejects(sql(statement), (thrown) => {
    assert.ok(thrown instanceof LanceError, String(thrown));
    assert.match(thrown.message, text);
    assert.match(thrown.kind, new RegExp(`^(?:${kind})$`));
    return true;
  });
  assert.deepEqual(await rowsOf("FROM people ORDER BY id"), before);
});

test("updates and deletes rows", async () => {
  assert.equal(
    await sql("UPDATE people SET name = 'x', HALF = NULL WHERE id IN (1, 2) AND name LIKE 'name%'"),
    2n,
  );
  assert.equal(
    await sql("update public.people as p set half = p.half * 2 where p.id > 2 and not (p.id = 4)"),
    1n,
  );
  assert.deepEqual(await rowsOf("FROM people ORDER BY id"), [
    [1, "x", null],
    [2, "x", null],
    [3, "name 3", 3],
    [4, "name 4", 2],
  ]);
  assert.equal(await sql("DELETE FROM people WHERE id = 1 OR half = 2"), 2n);
  assert.equal(await sql("DELETE FROM people WHERE id = 99"), 0n);
  assert.deepEqual(await rowsOf("SELECT id FROM people ORDER BY id"), [[2], [3]]);
  assert.equal(await sql("UPDATE people SET id = id + 1, name = name || '!'"), 2n);
  assert.deepEqual(await rowsOf("SELECT id, name FROM people ORDER BY id"), [
    [3, "x!"],
    [4, "name 3!"],
  ]);
  assert.equal(await sql("DELETE FROM people;"), 2n);
});

test("computes values without columns, and those of parameters, before it changes rows", async () => {
  assert.equal(
    await sql("UPDATE people SET name = upper('a') || ?, half = 1 / 4 WHERE id = 2 * ?", ["b", 1n]),
    1n,
  );
  assert.equal(await sql("UPDATE people SET half = $1 WHERE name = $2", [0.1, "name 3"]), 1n);
  assert.equal(await sql("DELETE FROM people WHERE half > ? AND id <> greatest(1, 4)", [0.15]), 2n);
  assert.deepEqual(await rowsOf("FROM people ORDER BY id"), [
    [3, "name 3", 0.1],
    [4, "name 4", 2],
  ]);
});

test("changes rows for each row of parameters", async () => {
  const parameters = arrow.tableToIPC(
    new arrow.Table({ id: arrow.vectorFromArray([1, 2], new arrow.Int32()) }),
    "stream",
  );
  const call = { tables: tablesOfNamespace(namespace), writes: writesToNamespace(namespace), parameters };
  assert.equal((await runSql(engine, "DELETE FROM people WHERE id = ?", call)).get(0)?.["Count"], 2n);
});

test.each([
  ["UPDATE people SET id = 1.5 + 'x'", "InvalidInput", /Could not convert/],
  ["UPDATE people SET id = 3000000000", "InvalidInput", /out of range/],
  ["UPDATE people SET id = id * 2000000000", "TableSchemaValidationError", /out of range/],
  ["UPDATE people SET age = 1", "InvalidInput", /no column "age" at position 19/],
  ["UPDATE people SET id = 1, ID = 2", "InvalidInput", /two values/],
  ["UPDATE people SET id = 1 AND true", "InvalidInput", /in parentheses/],
  ["UPDATE people SET id = lower(name)", "Unsupported", /"id".*position 24/],
  ["UPDATE people SET id = (SELECT 1)", "Unsupported", /"id"/],
  ["UPDATE people SET half = random()", "Unsupported", /"half"/],
  ["UPDATE people SET id = p.id FROM people AS p", "Unsupported", /no other table/],
  ["UPDATE people SET id = 1 WHERE lower(name) = 'x'", "Unsupported", /position 44/],
  ["UPDATE people SET id = 1 LIMIT 1", "Unsupported", /a condition alone/],
  ["UPDATE people SET id = 1 UNION SELECT 1", "Unsupported", /a condition alone/],
  ["UPDATE people SET id = 1 RETURNING id", "InvalidInput", /RETURNING/],
  ["UPDATE people SET *", "InvalidInput", /an assignment is/],
  ["UPDATE people SET", "InvalidInput", /does not parse/],
  ["UPDATE missing SET id = 1", "TableNotFound", /missing/],
  ["DELETE FROM people WHERE id IN (SELECT id FROM people)", "Unsupported", /position/],
  ["DELETE FROM people WHERE half = id", "Unsupported", /compares columns with values at position 31/],
  ["DELETE FROM people WHERE id = 1 AND name = 2", "Unsupported", /position 42/],
  ["DELETE FROM people WHERE id = 1 ORDER BY id", "Unsupported", /a condition alone/],
  ["DELETE FROM people USING people AS p WHERE true", "InvalidInput", /position/],
  ["DELETE FROM people; DELETE FROM people", "InvalidInput", /the end of the statement/],
  ["DELETE people", "InvalidInput", /FROM is expected/],
] as const)("changes nothing by %s", async (statement, kind, text) => {
  const before = await rowsOf("FROM people ORDER BY id");
  await assert.rejects(sql(statement), refused(kind, text));
  assert.deepEqual(await rowsOf("FROM people ORDER BY id"), before);
});

test.each([..."\u00a0\u2003\u200b\u3000\ufeff"])(
  "takes the space %j of Unicode for a space, as DuckDB does",
  async (space) => {
    await sql("CREATE OR REPLACE TABLE flags AS SELECT 1 AS id, true AS flag UNION ALL SELECT 2, false");
    assert.equal(await sql(`DELETE${space}FROM flags${space}WHERE${space}flag`), 1n);
    assert.deepEqual(await rowsOf("SELECT id FROM flags"), [[2]]);
  },
);

test.each([..."\u0085\u00ad\u200c\u200d\u200e\u2028"])(
  "refuses the invisible character %j in a keyword",
  async (character) => {
    await sql("CREATE OR REPLACE TABLE flags AS SELECT true AS flag");
    await assert.rejects(
      sql(`DELETE FROM flags WHERE${character}flag`),
      refused("InvalidInput", /at position 19: .*invisible character/),
    );
    assert.deepEqual(await rowsOf("FROM flags"), [[true]]);
  },
);

test.each(["a + a", "a * a", "b + b", "b * b", "c + c", "c - d", "e * e"])(
  "a value of columns past the range of its column changes nothing: %s",
  async (value) => {
    await sql(
      `CREATE OR REPLACE TABLE numbers AS SELECT 2000000000::INTEGER AS a, 9223372036854775807::BIGINT AS b, 200::UTINYINT AS c,
        201::UTINYINT AS d, 18446744073709551615::UBIGINT AS e`,
    );
    const before = await rowsOf("FROM numbers");
    await assert.rejects(sql(`UPDATE numbers SET ${value[0]} = ${value}`), /out of range|overflow/i);
    assert.deepEqual(await rowsOf("FROM numbers"), before);
    assert.equal(await sql("UPDATE numbers SET d = d - c, b = b - b"), 1n);
    assert.deepEqual(await rowsOf("SELECT b::INTEGER, d FROM numbers"), [[0, 1]]);
  },
);

test("changes no table whose columns differ only in case", async () => {
  const column = arrow.vectorFromArray([1, 2], new arrow.Int32());
  await namespace.createTable({ id: ["cases"] }, new arrow.Table({ id: column, ID: column, x: column }));
  const statements = [
    "UPDATE cases SET x = 9 WHERE id = 1",
    "DELETE FROM cases WHERE id = 1",
    "INSERT INTO cases VALUES (1, 2, 3)",
  ];
  for (const statement of statements)
    await assert.rejects(sql(statement), refused("Unsupported", /"ID" of table "cases" differ only in case/));
  assert.equal((await namespace.countTableRows({ id: ["cases"] })).count, 2n);
});

test("creates tables from queries, keeps or replaces those that exist, and drops them", async () => {
  assert.equal(await sql("CREATE TABLE team.old AS (SELECT id, half FROM people WHERE id < 3)"), 2n);
  assert.equal(await sql("CREATE TABLE IF NOT EXISTS team.old AS SELECT 1 AS other"), 0n);
  assert.deepEqual(await rowsOf("FROM team.old ORDER BY id"), [
    [1, 0.5],
    [2, 1],
  ]);
  assert.equal(await sql("CREATE OR REPLACE TABLE team.old AS SELECT id + 1 AS next FROM team.old"), 2n);
  assert.deepEqual(await rowsOf("FROM team.old ORDER BY next"), [[2], [3]]);
  assert.equal(await sql('DROP TABLE "team".old'), 0n);
  assert.equal(await sql("DROP TABLE IF EXISTS team.old"), 0n);
  await assert.rejects(sql("FROM team.old"), refused("TableNotFound", /old/));
});

test("creates tables of columns with types", async () => {
  const columns = `id BIGINT NOT NULL, "a b" VARCHAR(20) NULL, price DECIMAL(10, 2), vector FLOAT[4], at TIMESTAMP WITH TIME ZONE,
    tags STRUCT(k VARCHAR, v INTEGER[])[]`;
  assert.equal(await sql(`CREATE TABLE team.typed (${columns})`), 0n);
  const insert = `INSERT INTO team.typed VALUES (1, 'x', 9.99, [1, 2, 3, 4], '2026-01-02 03:04:05+00', [{'k': 'a', 'v': [1]}])`;
  assert.equal(await sql(insert), 1n);
  const { schema } = await namespace.queryTable({ id: ["team", "typed"] }).toTable();
  assert.deepEqual(
    schema.fields.map(({ name, nullable }) => [name, nullable]),
    [
      ["id", false],
      ["a b", true],
      ["price", true],
      ["vector", true],
      ["at", true],
      ["tags", true],
    ],
  );
  assert.equal(String(schema.fields[3]?.type), "FixedSizeList[4]<Float32>");
  assert.deepEqual(await rowsOf("SELECT price::VARCHAR, vector[2], tags[1].v[1] FROM team.typed"), [
    ["9.99", 2, 1],
  ]);
  await assert.rejects(sql("INSERT INTO team.typed (price) VALUES (1)"), /id/);
  await sql("DROP TABLE team.typed");
});

test("tells its result and its parameters before it runs, and changes nothing until then", async () => {
  const call = { tables: tablesOfNamespace(namespace), signal: new AbortController().signal };
  const statement = "INSERT INTO people (id) VALUES (?)";
  const prepared = await engine.prepare(statement, { ...call, writes: writesToNamespace(namespace) });
  assert.ok(prepared.isUpdate && prepared.readsTables);
  assert.deepEqual(await rowsOf("SELECT count(*)::INTEGER FROM people"), [[4]]);
  await assert.rejects(engine.prepare(statement, call), refused("Unsupported", /not served here/));
});

test("names without a schema are in the namespace of the call", async () => {
  await run("CREATE TABLE own AS SELECT 1 AS one", undefined, ["team"]);
  assert.deepEqual(await rowsOf("FROM team.own"), [[1]]);
  await run("DROP TABLE own", undefined, ["team"]);
});
