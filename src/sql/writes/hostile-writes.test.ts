import assert from "node:assert/strict";
import { tableFromArrays } from "apache-arrow";
import { afterAll, test } from "vitest";
import { runSql, tablesInMemory } from "../../../test/fixtures/sql.ts";
import { until } from "../../../test/support/until.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createSqlEngine } from "../create-engine.ts";
import type { SqlWrites } from "../sql-engine.ts";

const engine = createSqlEngine({ memoryMib: 128, keptMib: 0, timeoutMs: 15_000 });
/** For statements without an end, which compute on all threads until the time is over. */
const impatientEngine = createSqlEngine({ memoryMib: 128, keptMib: 0, timeoutMs: 2_000 });
afterAll(() => Promise.all([engine.close(), impatientEngine.close()]));

const t = tableFromArrays({ id: Int32Array.of(1, 2, 3), s: ["a", "b", "c"] });

/** Runs a statement for a caller who may read and change `t` alone; returns the tables that it read, and the changes that it completed. */
async function attempt(statement: string, by = engine) {
  const asked: string[] = [];
  const changes: string[] = [];
  const change = async (path: readonly string[], what: string, rows?: AsyncIterable<Uint8Array>) => {
    const name = path.join(".");
    if (name !== "t") throw new LanceError("PermissionDenied", `${name} is not yours`);
    for await (const _ of rows ?? []);
    changes.push(what);
  };
  const writes: SqlWrites = {
    database: undefined,
    create: (path, existing, rows) => change(path, `create ${existing}`, rows),
    insert: (path, rows) => change(path, "insert", rows),
    update: async (path) => change(path, "update").then(() => 1n),
    delete: async (path) => change(path, "delete").then(() => 1n),
    drop: (path) => change(path, "drop"),
    createView: ({ path }) => change(path, "create view"),
    dropView: (path) => change(path, "drop view"),
    createMaterializedView: async ({ path }) => change(path, "create materialized view").then(() => 1n),
    refreshMaterializedView: async (path) => change(path, "refresh").then(() => 1n),
    dropMaterializedView: (path) => change(path, "drop materialized view"),
  };
  const tables = tablesInMemory({ t }, ({ path }) => asked.push(path.join(".")));
  const failure = await runSql(by, statement, { tables, writes }).then(
    () => undefined,
    (thrown) => thrown,
  );
  return { asked, changes, failure };
}

const REFUSED: readonly string[] = [
  // Other statements behind or inside of one that writes.
  "INSERT INTO t VALUES (1, 'a'); DROP TABLE t",
  "INSERT INTO t VALUES (1, 'a'); SELECT 1",
  "DROP TABLE t; DROP TABLE t",
  "DROP TABLE t, secret",
  "CREATE TABLE t (a INTEGER); DROP TABLE t",
  "INSERT INTO t (INSERT INTO t VALUES (1, 'a') RETURNING *)",
  "INSERT INTO t WITH x AS (DELETE FROM t RETURNING *) FROM x",
  "WITH x AS (SELECT 1) INSERT INTO t FROM x",
  "EXPLAIN ANALYZE INSERT INTO t VALUES (1, 'a')",
  "COPY t FROM '/etc/passwd'",
  "INSERT INTO t VALUES (1, 'a') RETURNING *",
  "INSERT INTO t VALUES (1, 'a') ON CONFLICT DO NOTHING",
  "INSERT OR REPLACE INTO t VALUES (1, 'a')",
  "INSERT INTO t BY NAME SELECT 1 AS id",
  "INSERT INTO t DEFAULT VALUES",
  "INSERT INTO t VALUES (DEFAULT, 'a')",
  "MERGE INTO t USING t AS u ON true WHEN MATCHED THEN DELETE",
  "TRUNCATE t",
  "ALTER TABLE t DROP COLUMN s",
  "UPDATE t SET id = 1; DROP TABLE t",
  "UPDATE t SET id = 1 WHERE true; SELECT 1",
  "UPDATE t SET id = 1 RETURNING *",
  "UPDATE t SET id = (SELECT max(id) FROM secret)",
  "UPDATE t SET id = 1 FROM secret WHERE t.id = secret.id",
  "UPDATE t SET s = (SELECT content FROM read_text('/etc/passwd'))",
  "UPDATE t SET s = getenv('HOME')",
  "UPDATE t SET s = current_setting('temp_directory')",
  "UPDATE t SET s = main.read_text('x')",
  "UPDATE t SET id = 1 WHERE EXISTS (FROM secret)",
  "UPDATE t SET id = 1 WHERE id IN (SELECT id FROM secret)",
  "UPDATE t SET id = 1 WHERE s = getvariable('x')",
  "UPDATE t SET id = 1 GROUP BY 1",
  "UPDATE t SET id = 1 FROM t",
  "UPDATE t SET id = unnest([1, 2])",
  "UPDATE t SET id = count(*)",
  "UPDATE t SET id = 1, *",
  "UPDATE t SET t = 1",
  "UPDATE t SET x.id = 1",
  "DELETE FROM t WHERE s = (SELECT max(s) FROM secret)",
  "DELETE FROM t WHERE s = getenv('HOME')",
  "DELETE FROM t USING secret",
  "DELETE FROM t, secret",
  "DELETE FROM t WHERE true; DROP TABLE t",
  "DELETE FROM t RETURNING *",
  "DELETE FROM t UNION FROM secret",
  "DELETE FROM t WHERE true UNION FROM secret",
  "DELETE FROM t WHERE id = 1 OR lower(s) = 'a'",
  "DELETE FROM t WHERE NOT lower(s) = 'a'",
  "DELETE FROM t WHERE id BETWEEN 1 AND length(s)",
  "DELETE FROM t WHERE id = 1 LIMIT 1",
  "DELETE FROM t WHERE count(*) > 0",
  "DELETE FROM t WHERE random() < 0.5",
  // What queries must not read either.
  "INSERT INTO t SELECT 1, content FROM read_text('/etc/passwd')",
  "INSERT INTO t SELECT 1, current_setting('temp_directory')",
  "INSERT INTO t SELECT 1, getenv('HOME')",
  "CREATE TABLE t AS FROM read_csv('/etc/passwd')",
  "CREATE TABLE t AS FROM duckdb_settings()",
  "CREATE OR REPLACE TABLE t AS FROM lance_gateway_scan(0)",
  "CREATE TABLE t AS EXECUTE p",
  // Other objects.
  "CREATE SCHEMA s",
  "CREATE SECRET (TYPE s3)",
  "CREATE MACRO m(a) AS a",
  "CREATE TYPE e AS ENUM ('a')",
  "CREATE SEQUENCE s",
  "CREATE INDEX i ON t (id)",
  "CREATE TEMP TABLE t AS SELECT 1",
  "DROP SCHEMA public CASCADE",
  "DROP DATABASE lance",
  "DROP SECRET x",
  // Views.
  "CREATE VIEW t AS SELECT 1; DROP TABLE t",
  "CREATE VIEW t AS DROP TABLE t",
  "CREATE VIEW t AS CREATE VIEW t AS SELECT 1",
  "CREATE VIEW t AS INSERT INTO t VALUES (1, 'a') RETURNING *",
  "CREATE VIEW t AS WITH x AS (DELETE FROM t RETURNING *) FROM x",
  "CREATE VIEW t AS FROM read_csv('/etc/passwd')",
  "CREATE VIEW t AS FROM duckdb_settings()",
  "CREATE VIEW t AS FROM lance_gateway_scan(0)",
  "CREATE VIEW t AS FROM lance_gateway_view_0, t AS u",
  "CREATE VIEW t AS WITH lance_gateway_view_0 AS (SELECT 1) FROM t AS u",
  "CREATE VIEW t AS SELECT getenv('HOME')",
  "CREATE VIEW t AS SELECT current_setting('temp_directory')",
  "CREATE VIEW t AS SELECT getvariable('x')",
  "CREATE VIEW t AS SELECT $1",
  "CREATE VIEW t AS SELECT id FROM memory.public.t",
  "CREATE VIEW t AS FROM t",
  "CREATE OR REPLACE VIEW t AS SELECT 1 UNION ALL FROM t",
  "CREATE VIEW t(a, b) AS SELECT 1, 2",
  "CREATE VIEW t",
  "CREATE VIEW t AS",
  "CREATE VIEW t AS ;",
  "CREATE VIEW t AS -- SELECT 1",
  "CREATE VIEW t AS SELECT 1 /*",
  "CREATE VIEW t AS SELECT 1\0",
  "CREATE VIEW memory.public.t AS SELECT 1",
  "CREATE VIEW a.b.c.t AS SELECT 1",
  "CREATE OR REPLACE VIEW IF NOT EXISTS t AS SELECT 1",
  "CREATE TEMP VIEW t AS SELECT 1",
  "CREATE RECURSIVE VIEW t(n) AS SELECT 1",
  "CREATE MATERIALIZED VIEW t AS SELECT 1",
  "CREATE VIEW t AS SELECT 1 WITH CHECK OPTION",
  "DROP VIEW t, secret",
  "DROP VIEW t CASCADE",
  "DROP VIEW t; DROP VIEW t",
  "DROP VIEW",
  "ALTER VIEW t RENAME TO u",
  // Types and columns of new tables.
  "CREATE TABLE t (a INTEGER, b INTEGER DEFAULT (SELECT 1))",
  "CREATE TABLE t (a INTEGER GENERATED ALWAYS AS (getenv('HOME')))",
  "CREATE TABLE t (a secret_type)",
  "CREATE TABLE t (a system.main.json)",
  "CREATE TABLE t (a INTEGER) WITH (location = '/etc')",
  "CREATE TABLE t (a INTEGER FROM secret)",
  "CREATE TABLE t (a (SELECT 1))",
  "CREATE TABLE t (a INTEGER[(SELECT max(id) FROM secret)])",
  'CREATE TABLE t (a STRUCT("b" INTEGER) , "c"" INTEGER)',
  // Names, quotes and comments.
  'INSERT INTO "t" " VALUES (1, \'a\')',
  "INSERT INTO t/* VALUES (1, 'a')",
  "INSERT INTO t VALUES (1, 'a') /*",
  "INSERT INTO t VALUES (1, 'a",
  "INSERT INTO",
  "DROP TABLE",
  "DROP TABLE IF EXISTS",
  "DROP TABLE ''",
  'DROP TABLE ""',
  "DROP TABLE t -- \n; x",
  "CREATE TABLE",
  "INSERT INTO memory.public.t VALUES (1, 'a')",
  "INSERT INTO t VALUES (1, 'a')\0",
  "DROP TABLE a.b.c.t",
];

test.each(REFUSED)("refuses %s, and changes nothing", async (statement) => {
  const { asked, changes, failure } = await attempt(statement);
  assert.ok(failure instanceof LanceError, String(failure));
  assert.notEqual(failure.kind, "Internal");
  assert.deepEqual(changes, []);
  for (const name of asked) assert.equal(name, "t");
});

const OTHER_TABLES: readonly string[] = [
  "INSERT INTO secret VALUES (1, 'a')",
  'insert into "secret" select * from t',
  "INSERT INTO SECRET FROM t",
  "INSERT INTO ns.t FROM t",
  'INSERT INTO "a$b".t FROM t',
  "INSERT INTO t FROM secret",
  "INSERT INTO t SELECT id, (SELECT max(s) FROM secret) FROM t",
  "INSERT INTO t (WITH t AS (FROM secret) FROM t)",
  "CREATE TABLE secret AS FROM t",
  "CREATE OR REPLACE TABLE secret AS FROM t",
  "CREATE OR REPLACE TABLE t AS FROM secret",
  "CREATE TABLE IF NOT EXISTS t2 AS FROM secret",
  "CREATE OR REPLACE TABLE secret (a INTEGER)",
  "UPDATE secret SET id = 1",
  'DELETE FROM "secret"',
  "DELETE FROM ns.t WHERE true",
  "CREATE VIEW secret AS FROM t",
  "CREATE VIEW secret AS SELECT 1",
  "CREATE OR REPLACE VIEW ns.t AS SELECT 1",
  "CREATE VIEW IF NOT EXISTS secret AS SELECT 1",
  "CREATE VIEW t AS FROM secret",
  "CREATE VIEW t AS WITH t AS (FROM secret) FROM t",
  "CREATE VIEW t AS SELECT (SELECT max(s) FROM secret)",
  "DROP VIEW secret",
  'DROP VIEW IF EXISTS "T"',
  "DROP TABLE secret",
  "DROP TABLE IF EXISTS ns.t",
  'DROP TABLE "/etc/passwd"',
  "DROP TABLE information_schema.tables",
  "DROP TABLE s\u0435cret",
  'DROP TABLE "T"',
];

test.each(OTHER_TABLES)("changes and reads other tables by %s as the caller alone", async (statement) => {
  const { changes, failure } = await attempt(statement);
  assert.ok(failure instanceof LanceError, String(failure));
  assert.match(failure.kind, /^(?:PermissionDenied|TableNotFound)$/);
  assert.deepEqual(changes, []);
});

const ENDLESS =
  "INSERT INTO t SELECT a.range, 'x' FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = -1";

/** Statements that ask for too much. */
const COSTLY: readonly string[] = [
  "INSERT INTO t SELECT i, repeat('x', 1000) AS r FROM range(1000000) x(i) ORDER BY hash(i), r",
  `INSERT INTO t VALUES ${"(1, 'a'),".repeat(40_000)}(1, 'a')`,
  `CREATE TABLE t (${Array.from({ length: 20_000 }, (_, i) => `c${i} INTEGER`).join(", ")})`,
  `CREATE TABLE t (a ${"STRUCT(b ".repeat(2_000)}INTEGER${")".repeat(2_000)})`,
  `INSERT INTO t ${"/*".repeat(50_000)}`,
  `DROP TABLE ${"x".repeat(300_000)}`,
];

test.each([
  ...COSTLY.map((statement) => [statement.slice(0, 40), statement, engine] as const),
  [ENDLESS.slice(0, 40), ENDLESS, impatientEngine] as const,
])("refuses %s…, and works on", async (_text, statement, by) => {
  const { changes, failure } = await attempt(statement, by);
  assert.ok(failure instanceof LanceError, String(failure));
  assert.deepEqual(changes, []);
  await until(async () => {
    const after = await attempt("INSERT INTO t VALUES (1, 'a')", by);
    // A busy machine may take the whole time of an impatient engine.
    if (after.failure instanceof LanceError && after.failure.kind === "DeadlineExceeded") return false;
    assert.deepEqual([after.failure, after.changes], [undefined, ["insert"]]);
    return true;
  });
});

test("comments and spaces may stand anywhere in a head", async () => {
  const { changes, failure } = await attempt(
    "/* a /* b */ */ insert -- c\n into/**/public . \"t\"\t( s,\nid ) -- ;\nselect 'x', 1 -- end",
  );
  assert.equal(failure, undefined);
  assert.deepEqual(changes, ["insert"]);
});
