import assert from "node:assert/strict";
import { tableFromArrays } from "apache-arrow";
import { afterAll, test } from "vitest";
import { runSql, tablesInMemory } from "../../test/fixtures/sql.ts";
import { until } from "../../test/support/until.ts";
import { isInvalidInput } from "../client/index.ts";
import { LanceError } from "../namespace/errors.ts";
import { createSqlEngine } from "./create-engine.ts";
import type { SqlEngine } from "./sql-engine.ts";

const engine = createSqlEngine({ memoryMib: 128, timeoutMs: 30_000 });
/** For statements without an end, which compute on all threads until the time is over. */
const impatientEngine = createSqlEngine({ memoryMib: 128, timeoutMs: 2_000 });
afterAll(() => Promise.all([engine.close(), impatientEngine.close()]));

const t = tableFromArrays({ id: Int32Array.of(1, 2, 3), s: ["a", "b", "c"] });

/** Runs a statement for a caller who may read `t` alone; returns the names that it asked for. */
async function attempt(statement: string): Promise<readonly string[]> {
  const asked: string[] = [];
  const tables = tablesInMemory({ t }, ({ path }) => asked.push(path.join(".")));
  const run = runSql(engine, statement, { tables });
  await assert.rejects(run, (thrown) => thrown instanceof LanceError && thrown.kind !== "Internal");
  return asked;
}

const UNSUPPORTED: readonly string[] = [
  // Statements.
  "INSERT INTO t VALUES (4, 'd')",
  "UPDATE t SET id = 1",
  "DELETE FROM t",
  "CREATE TABLE u AS SELECT * FROM t",
  "CREATE VIEW v AS SELECT 1",
  "CREATE MACRO m(a) AS a",
  "CREATE TYPE e AS ENUM ('a')",
  "CREATE SECRET (TYPE s3, KEY_ID 'a', SECRET 'b')",
  "DROP TABLE t",
  "ALTER TABLE t ADD COLUMN x INTEGER",
  "TRUNCATE t",
  "COPY t TO '/tmp/out.csv'",
  "COPY (SELECT 1) TO '/tmp/out.csv'",
  "COPY t FROM '/etc/passwd'",
  "ATTACH '/tmp/x.db' AS x",
  "ATTACH ':memory:' AS x",
  "DETACH memory",
  "USE memory",
  "INSTALL httpfs",
  "LOAD '/tmp/x.duckdb_extension'",
  "SET memory_limit = '100GB'",
  "SET enable_external_access = true",
  "RESET lock_configuration",
  "PRAGMA database_list",
  "PRAGMA enable_profiling",
  "CALL pragma_version()",
  "CALL enable_logging()",
  "EXPORT DATABASE '/tmp/x'",
  "IMPORT DATABASE '/tmp/x'",
  "BEGIN TRANSACTION",
  "CHECKPOINT",
  "VACUUM",
  "ANALYZE",
  "EXPLAIN ANALYZE SELECT 1",
  "EXPLAIN (ANALYZE) SELECT 1",
  "EXPLAIN EXPLAIN SELECT 1",
  "EXPLAIN SHOW TABLES",
  "EXPLAIN (FORMAT GRAPHVIZ) SELECT 1",
  "EXPLAIN FROM read_text('/etc/passwd')",
  "EXPLAIN SELECT 1; SELECT 2",
  "PREPARE p AS SELECT 1",
  "EXECUTE p",
  "SELECT 1; SELECT * FROM t",
  "SHOW TABLES FROM a.b",
  "SHOW TABLES; SELECT 1",
  "SHOW ALL TABLES",
  "SHOW DATABASES",
  // Functions that read files, the network or the engine.
  "SELECT * FROM read_csv('/etc/passwd')",
  "SELECT * FROM READ_CSV_AUTO('/etc/passwd')",
  "SELECT * FROM read_text('/etc/passwd')",
  "SELECT * FROM read_blob('/proc/self/environ')",
  "SELECT * FROM read_parquet('https://example.com/x.parquet')",
  "SELECT * FROM parquet_metadata('/tmp/x')",
  "SELECT * FROM read_json('/tmp/x')",
  "SELECT * FROM read_duckdb('/tmp/x.db')",
  "SELECT * FROM glob('/**')",
  "SELECT * FROM sniff_csv('/etc/passwd')",
  "SELECT * FROM duckdb_settings()",
  "SELECT * FROM duckdb_secrets()",
  "SELECT * FROM duckdb_logs()",
  "SELECT * FROM pragma_database_size()",
  "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
  "SELECT * FROM query_table('secret')",
  "SELECT * FROM arrow_scan(1, 2, 3)",
  "SELECT * FROM json_execute_serialized_sql('{}')",
  "SELECT * FROM sql_auto_complete('SEL')",
  "SELECT * FROM lance_gateway_scan(0)",
  "SELECT * FROM LANCE_GATEWAY_SCAN(1), t",
  "SELECT * FROM lance_vector_search('/tmp/x.lance', 'v', [1])",
  "SELECT * FROM lance_fts('t', 'text', (SELECT content FROM read_text('/etc/passwd')))",
  "SELECT * FROM lance_fts('t', 'text', 'a', filter = getenv('HOME'))",
  "SELECT * FROM lance_scan('/tmp/x.lance')",
  "SELECT * FROM t, LATERAL lance_fts('t', 'text', t.name)",
  "SELECT * FROM system.main.duckdb_settings()",
  "SELECT current_setting('temp_directory')",
  "SELECT getvariable('x')",
  "SELECT getenv('HOME')",
  "SELECT nextval('s')",
  "SELECT write_log('x')",
  "SELECT sleep_ms(100000)",
  "SELECT pg_sleep(100)",
  "SELECT version()",
  "SELECT current_query()",
  "SELECT json_serialize_plan('SELECT 1')",
  "SELECT json_deserialize_sql('{}')",
  "SELECT in_search_path('a', 'b')",
  "SELECT main.read_text('x')",
  "SELECT system.main.abs(1)",
  "SELECT 'x'.read_text()",
  "SELECT (SELECT content FROM read_text('/etc/passwd'))",
  "SELECT * FROM t WHERE EXISTS (FROM read_text('/etc/passwd'))",
  "WITH x AS (FROM read_text('/etc/passwd')) FROM x",
  "SELECT * FROM t, LATERAL (FROM read_csv(t.s))",
  "SELECT list_transform([1], lambda x: current_setting('threads'))",
  "SELECT sum(id) FILTER (WHERE getvariable('x') IS NULL) FROM t",
  "SELECT sum(id) OVER (ORDER BY current_setting('threads')) FROM t",
  "SELECT id FROM t ORDER BY current_setting('threads')",
  "SELECT id FROM t LIMIT (SELECT current_setting('threads')::INTEGER)",
  "SELECT id FROM t GROUP BY current_setting('threads'), id",
  "SELECT id FROM t QUALIFY current_setting('threads') = '1'",
  "SELECT * REPLACE (current_setting('threads') AS s) FROM t",
  "FROM (VALUES (current_setting('threads'))) v(x)",
  "SELECT/**/current_setting/**/('threads')",
  "SELECT \"current_setting\"('threads')",
  "FROM t PIVOT (max(current_setting('threads')) FOR id IN (1))",
  "SELECT s COLLATE de FROM t",
  "SELECT 1::secret_type",
  "FROM t AT (TIMESTAMP => now())",
  "FROM t AT (VERSION => (SELECT 1))",
];

test.each(UNSUPPORTED)("refuses %s", async (statement) => {
  for (const asked of await attempt(statement)) assert.equal(asked, "t");
});

/** Statements that name a table that the caller may not read, and the name that is asked for. */
const OTHER_TABLES: readonly (readonly [string, string])[] = [
  ["FROM secret", "secret"],
  ['FROM "secret"', "secret"],
  ["FROM SECRET", "SECRET"],
  ["FROM public.secret", "secret"],
  ["FROM ns.secret", "ns.secret"],
  ['FROM "a$b".secret', "a.b.secret"],
  ["FROM t JOIN secret USING (id)", "secret"],
  ["FROM t, LATERAL (FROM secret)", "secret"],
  ["SELECT (SELECT max(id) FROM secret) FROM t", "secret"],
  ["WITH t AS (FROM secret) FROM t", "secret"],
  ["WITH secret AS (FROM secret) FROM secret", "secret"],
  [
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r JOIN secret ON true WHERE n < 3) FROM r",
    "secret",
  ],
  ["WITH a AS (FROM b), b AS (SELECT 1) FROM a", "b"],
  ["FROM (WITH secret AS (SELECT 1) FROM secret) x, secret", "secret"],
  ["SELECT 1 UNION ALL FROM secret", "secret"],
  ["FROM t WHERE id IN (SELECT id FROM secret)", "secret"],
  ["DESCRIBE secret", "secret"],
  ["EXPLAIN FROM secret", "secret"],
  ["FROM lance_fts('secret', 'text', 'a')", "secret"],
  [`FROM LANCE_Vector_Search('"a$b".secret', 'v', [1])`, "a.b.secret"],
  ["FROM t, lance_hybrid_search('ns.secret', 'v', [1], 'text', 'a') s", "ns.secret"],
  ["SUMMARIZE secret", "secret"],
  ["FROM t -- ;\n, secret", "secret"],
  ["FROM /* t */ secret", "secret"],
  ["FROM '/etc/passwd'", "/etc/passwd"],
  ["FROM 'https://example.com/x.parquet'", "https://example.com/x.parquet"],
  ["FROM 'x.lance'", "x.lance"],
  ["FROM information_schema.tables", "information_schema.tables"],
  ["FROM pg_catalog.pg_class", "pg_catalog.pg_class"],
  ["FROM sqlite_master", "sqlite_master"],
  ["FROM duckdb_settings", "duckdb_settings"],
  ["WITH x AS (SELECT 1) FROM main.x", "main.x"],
  ["FROM sеcret", "sеcret"],
  ['FROM "ſecret"', "ſecret"],
  ["WITH k AS (SELECT 1) FROM \u212a", "\u212a"],
];

test.each(OTHER_TABLES)(
  "asks for the table of %s as the caller, and no other way",
  async (statement, name) => {
    const asked = await attempt(statement);
    assert.ok(asked.includes(name), JSON.stringify(asked));
    for (const each of asked) assert.ok(each === name || each === "t", each);
  },
);

const nested = (depth: number) => `SELECT ${"(".repeat(depth)}1${")".repeat(depth)}`;
const calls = (depth: number) => `SELECT ${"abs(".repeat(depth)}1${")".repeat(depth)}`;

type Costly = readonly [what: string, kind: RegExp, statement: string];

const ENDLESS: readonly Costly[] = [
  [
    "a join without an end",
    /DeadlineExceeded/,
    "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = -1",
  ],
  [
    "a recursion without an end",
    /DeadlineExceeded|PayloadTooLarge/,
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
  ],
];

/** Statements that ask for too much. */
const COSTLY: readonly Costly[] = [
  [
    "a sort beyond the memory",
    /PayloadTooLarge/,
    "SELECT i, repeat('x', 1000) AS r FROM range(1000000) x(i) ORDER BY hash(i)",
  ],
  [
    "a string beyond the memory",
    /PayloadTooLarge|InvalidInput|DeadlineExceeded/,
    "SELECT repeat('x', 2000000000)",
  ],
  [
    "a list beyond the memory",
    /PayloadTooLarge|InvalidInput/,
    "SELECT list(repeat('x', 1000) || i) FROM range(10000000) x(i)",
  ],
  ["a deep call", /InvalidInput|Unsupported/, calls(5_000)],
  [
    "a deep subquery",
    /InvalidInput|Unsupported/,
    `${"SELECT * FROM (".repeat(500)}SELECT 1${")".repeat(500)}`,
  ],
  ["a statement of a megabyte", /InvalidInput/, `SELECT '${"x".repeat(1_000_000)}'`],
  ["many numbers", /InvalidInput/, `SELECT id FROM t WHERE id IN (${"1,".repeat(50_000)}1)`],
  ["a huge number", /InvalidInput/, "SELECT 1e999"],
  ["a null character", /InvalidInput|Unsupported/, "SELECT 1\0 FROM secret"],
  ["a lone surrogate", /./, "SELECT '\ud800' FROM secret"],
];

const refusedBy = (engine: SqlEngine) => async (_what: string, kind: RegExp, statement: string) => {
  await assert.rejects(runSql(engine, statement, { tables: tablesInMemory({ t }) }), (thrown) => {
    assert.match((thrown as LanceError).kind, kind);
    return true;
  });
  await until(async () => {
    const after = await runSql(engine, "SELECT sum(id) AS n FROM t", { tables: tablesInMemory({ t }) }).catch(
      (thrown: LanceError) => {
        // A busy machine may take the whole time of an impatient engine.
        if (thrown.kind !== "DeadlineExceeded") throw thrown;
      },
    );
    if (after !== undefined) assert.equal(after.numRows, 1);
    return after !== undefined;
  });
};

test.each(COSTLY)("refuses %s, and works on", refusedBy(engine));
test.each(ENDLESS)("refuses %s, and works on", refusedBy(impatientEngine));

test("parentheses alone are no nesting", async () => {
  assert.equal((await runSql(engine, nested(100))).numRows, 1);
});

test("a parameter is a value and never a part of the statement", async () => {
  const { tableToIPC } = await import("apache-arrow");
  const parameters = tableToIPC(tableFromArrays({ p: ["x' OR 1=1 --"] }), "stream");
  const result = await runSql(engine, "SELECT id FROM t WHERE s = ?", {
    tables: tablesInMemory({ t }),
    parameters,
  });
  assert.equal(result.numRows, 0);
  await assert.rejects(
    runSql(engine, "FROM ?", { tables: tablesInMemory({ t }), parameters }),
    isInvalidInput,
  );
});
