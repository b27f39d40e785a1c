import assert from "node:assert/strict";
import { afterAll, test } from "vitest";
import { runSql, tablesInMemory } from "../../../test/fixtures/sql.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createSqlEngine } from "../create-engine.ts";
import type { SqlTables, SqlWrites } from "../sql-engine.ts";

const engine = createSqlEngine({ memoryMib: 128, keptMib: 0, timeoutMs: 15_000 });
afterAll(() => engine.close());

/** Runs a statement, and returns the calls that it makes and its rows. */
async function attempt(statement: string, namespacePath: readonly string[] = ["team"]) {
  const calls: unknown[] = [];
  const noted = async (...call: unknown[]) => {
    calls.push(call);
    return 3n;
  };
  const other = () => assert.fail("another change is made");
  const writes: SqlWrites = {
    database: "lance",
    ...{ create: other, insert: other, update: other, delete: other, drop: other },
    ...{ createView: other, dropView: other },
    createMaterializedView: ({ path, query, autoRefresh }) => noted("create", path, query, autoRefresh),
    refreshMaterializedView: (path, isFull) => noted("refresh", path, isFull),
    dropMaterializedView: async (path) => void (await noted("drop", path)),
  };
  const tables: SqlTables = {
    ...tablesInMemory({}),
    async describeMaterializedView(path) {
      await noted("describe", path);
      return { query: "SELECT 1", autoRefresh: true, version: 2n };
    },
    async *listMaterializedViews(namespace) {
      await noted("list", namespace);
      yield* ["b'c", "z", "a", "\u{1f600}", "ä"];
    },
  };
  const rows = (await runSql(engine, statement, { tables, writes, namespacePath })).toArray();
  return { calls, rows: rows.map((row) => row.toJSON()) };
}

const query = async (statement: string, namespacePath?: readonly string[]) => {
  const { calls } = await attempt(`CREATE MATERIALIZED VIEW "v" AS ${statement}`, namespacePath);
  return (calls as string[][])[0]?.[2];
};

test("LanceDB's statements that change views become calls, and return their rows", async () => {
  const made = ["create", ["team", "v"], 'SELECT * FROM "team"."t"', false];
  for (const [statement, call] of [
    ['CREATE MATERIALIZED VIEW "v" AS SELECT * FROM "t"', made],
    ["create materialized view v with (AUTO_REFRESH_ENABLED = FALSE) as SELECT * FROM t ; ", made],
    [
      'CREATE MATERIALIZED VIEW "v" WITH (auto_refresh_enabled = true) AS SELECT * FROM "t"',
      [...made.slice(0, 3), true],
    ],
    ["CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT * FROM t", made],
    ['REFRESH MATERIALIZED VIEW "v"', ["refresh", ["team", "v"], false]],
    ['REFRESH MATERIALIZED VIEW "v" WITH (full = true)', ["refresh", ["team", "v"], true]],
    ["REFRESH MATERIALIZED VIEW public.v WITH (full=false);", ["refresh", ["v"], false]],
  ] as const)
    assert.deepEqual(await attempt(statement), { calls: [call], rows: [{ Count: 3n }] }, statement);
  for (const statement of ['DROP MATERIALIZED VIEW "v"', "DROP MATERIALIZED VIEW IF EXISTS lance.team.v"])
    assert.deepEqual(await attempt(statement), { calls: [["drop", ["team", "v"]]], rows: [{ Count: 0n }] });
});

test("names with quotes, dots and other letters stay as they are, and namespaces are parts of a schema", async () => {
  const { calls } = await attempt('DROP MATERIALIZED VIEW "a$b"."it""s.\u00fc"');
  assert.deepEqual(calls, [["drop", ["a", "b", 'it"s.\u00fc']]]);
  assert.equal(await query('SELECT * FROM "x""y.z"', []), 'SELECT * FROM "x""y.z"');
  assert.equal(await query('SELECT * FROM "a$b"."t"'), 'SELECT * FROM "a"."b"."t"');
  assert.equal(await query("SELECT * FROM `public` . `a``b`"), 'SELECT * FROM "a`b"');
  assert.equal(await query("SELECT * FROM lance.team.t"), 'SELECT * FROM "team"."t"');
  // Below the namespace, it is a name that no table has.
  assert.equal(await query("SELECT * FROM a$b"), 'SELECT * FROM "team"."a$b"');
});

test("the rest of a query stays as it was sent", async () => {
  for (const [before, after] of [
    [
      "SELECT `from`, b + 1 AS \"from\", ' FROM x ' AS `c` FROM ",
      " WHERE s = 'SELECT; -- x' AND a > 1 LIMIT 3",
    ],
    ["SELECT a IS DISTINCT FROM b AS d, extract(year FROM at) AS y FROM ", ""],
    ["  \nselect * from ", "\twhere (a) limit 5"],
    ["SELECT '\u{1f600}' AS x FROM ", " WHERE name = '\u{1f600}'"],
  ] as const)
    assert.equal(await query(`${before}t${after};`, []), `${before.trimStart()}"t"${after}`);
});

test("LanceDB's statements that look views up return the columns that it reads", async () => {
  assert.deepEqual(await attempt('DESCRIBE MATERIALIZED VIEW "v"'), {
    calls: [["describe", ["team", "v"]]],
    rows: [{ name: "v", query: "SELECT 1", auto_refresh: true, source_version: null, version: 2n }],
  });
  const names = async (rest: string) => {
    const { calls, rows } = await attempt(`SHOW MATERIALIZED VIEWS${rest}`);
    assert.deepEqual(calls, [["list", ["team"]]]);
    return rows.map(({ name }) => name);
  };
  assert.deepEqual(await names(""), ["a", "b'c", "z", "ä", "\u{1f600}"]);
  assert.deepEqual(await names(" LIMIT 2"), ["a", "b'c"]);
  assert.deepEqual(await names(" WHERE name > 'b''c' LIMIT 101;"), ["z", "ä", "\u{1f600}"]);
  assert.deepEqual(await names(" where name > '' limit 0"), []);
});

const OF = "CREATE MATERIALIZED VIEW v AS";

/** Statements, with a part of the error, and a position if there is one. */
const REFUSED: readonly (readonly [statement: string, kind: string, text: RegExp])[] = [
  [`${OF} SELECT * FROM t JOIN u ON t.a = u.a`, "Unsupported", /"JOIN" is not .* at position 47$/],
  [`${OF} SELECT * FROM t, u`, "Unsupported", /"," is not .* at position 46$/],
  [`${OF} SELECT * FROM t AS x`, "Unsupported", /"AS" is not .* at position 47$/],
  [`${OF} SELECT * FROM t x WHERE x.a = 1`, "Unsupported", /"x" is not/],
  [`${OF} SELECT * FROM t AT (VERSION => 1)`, "Unsupported", /"AT" is not/],
  [`${OF} SELECT * FROM t TABLESAMPLE 1 PERCENT`, "Unsupported", /"TABLESAMPLE" is not/],
  [`${OF} SELECT a FROM t GROUP BY a`, "Unsupported", /"GROUP" is not/],
  [`${OF} SELECT a FROM t WHERE a > 1 GROUP BY a`, "Unsupported", /"GROUP" is not .* position 59$/],
  [`${OF} SELECT a FROM t WHERE a > 1 ORDER BY a`, "Unsupported", /"ORDER" is not/],
  [`${OF} SELECT a FROM t UNION SELECT a FROM u`, "Unsupported", /"UNION" is not/],
  [`${OF} SELECT a FROM t WHERE a > 1 HAVING true`, "Unsupported", /"HAVING" is not/],
  [`${OF} SELECT DISTINCT a FROM t`, "Unsupported", /"DISTINCT" is not/],
  [`${OF} SELECT (SELECT max(a) FROM secret) AS m FROM t`, "Unsupported", /"SELECT" is not .* position 39$/],
  [`${OF} SELECT * FROM (SELECT * FROM secret)`, "Unsupported", /"SELECT" is not/],
  [`${OF} SELECT * FROM (t)`, "Unsupported", /"\(" is not/],
  [`${OF} SELECT * FROM read_csv('/etc/passwd')`, "Unsupported", /"\(" is not/],
  [`${OF} SELECT * FROM '/etc/passwd'`, "Unsupported", /"'\/etc\/passwd'" is not/],
  [`${OF} SELECT * FROM t WHERE a IN (SELECT a FROM secret)`, "Unsupported", /"SELECT" is not/],
  [`${OF} WITH x AS (SELECT 1) SELECT * FROM x`, "Unsupported", /"WITH" is not .* position 31$/],
  [`${OF} FROM t`, "Unsupported", /"FROM" is not/],
  [`${OF} VALUES (1)`, "Unsupported", /"VALUES" is not/],
  [`${OF} SELECT * FROM a.b.c.t`, "Unsupported", /"t" is not/],
  [`${OF} SELECT * FROM a.b.t`, "Unsupported", /the database "a" cannot be named here/],
  [`${OF} SELECT * FROM t; DROP TABLE t`, "Unsupported", /";" is not/],
  [`${OF} SELECT * FROM t WHERE a = 1; DROP TABLE t;`, "Unsupported", /";" is not/],
  [`${OF} SELECT * FROM t WHERE a = 1; `.concat(";"), "Unsupported", /";" is not/],
  [`${OF} SELECT * FROM t -- x`, "InvalidInput", /must not have comments \(at character 47\)/],
  [`${OF} SELECT * FROM /* x */ t`, "InvalidInput", /must not have comments/],
  [`${OF} SELECT * FROM t WHERE a = $1`, "InvalidInput", /placeholders/],
  [`${OF} SELECT * FROM t WHERE s = 'x`, "InvalidInput", /a quote is not closed/],
  [`${OF} SELECT * FROM t WHERE (a`, "InvalidInput", /a \) is missing/],
  [`${OF} SELECT 1`, "InvalidInput", /has no FROM/],
  [`${OF} SELECT * FROM`, "InvalidInput", /has no table/],
  [`${OF} SELECT * FROM team.`, "InvalidInput", /has no table/],
  [`${OF} `, "InvalidInput", /has no SELECT/],
  ["CREATE MATERIALIZED VIEW v SELECT * FROM t", "InvalidInput", /AS is expected, and "SELECT"/],
  ["CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT * FROM t", "Unsupported", /CREATE OR REPLACE of "MAT/],
  ["CREATE MATERIALIZED TABLE v AS SELECT * FROM t", "Unsupported", /CREATE of "MATERIALIZED"/],
  [
    "CREATE MATERIALIZED VIEW v WITH (auto_refresh_interval_seconds = 0.5) AS SELECT * FROM t",
    "Unsupported",
    /"auto_refresh_interval_seconds" is not supported at position 34: a view with auto_refresh_enabled/,
  ],
  [
    "CREATE MATERIALIZED VIEW v WITH (auto_refresh_enabled = true, x = 1) AS SELECT * FROM t",
    "Unsupported",
    /the option "x" is not supported at position 63$/,
  ],
  ["REFRESH MATERIALIZED VIEW v WITH (full = true, full = false)", "InvalidInput", /"full" is there twice/],
  ["REFRESH MATERIALIZED VIEW v WITH (full = 'true')", "InvalidInput", /true or false is expected/],
  ["REFRESH MATERIALIZED VIEW v WITH ()", "InvalidInput", /the name of an option is expected/],
  ["REFRESH MATERIALIZED VIEW v; DROP TABLE v", "InvalidInput", /the end of the statement is expected/],
  ["REFRESH TABLE v", "Unsupported", /REFRESH of "TABLE"/],
  ["DROP MATERIALIZED VIEW v, w", "InvalidInput", /the end of the statement is expected/],
  ["DROP MATERIALIZED VIEW v CASCADE", "InvalidInput", /the end of the statement is expected/],
  ["DROP MATERIALIZED VIEW 'v'", "InvalidInput", /the name of a table is expected/],
  ["DROP MATERIALIZED VIEW other.team.v", "Unsupported", /the database "other" cannot be named here/],
  ["DROP MATERIALIZED VIEW v\u0000", "InvalidInput", /null character/],
  ["DROP MATERIALIZED\u2063 VIEW v", "InvalidInput", /invisible character/],
  ["DESCRIBE MATERIALIZED VIEW v; SELECT 1", "InvalidInput", /the end of the statement is expected/],
  ["DESCRIBE MATERIALIZED VIEW a.b.c.d", "InvalidInput", /the end of the statement is expected/],
  ["DESCRIBE MATERIALIZED VIEW other.team.v", "Unsupported", /the database "other"/],
  ["SHOW MATERIALIZED VIEWS WHERE name < 'x'", "InvalidInput", /> is expected, and "<" is there/],
  ["SHOW MATERIALIZED VIEWS WHERE name > x", "InvalidInput", /a string is expected/],
  ["SHOW MATERIALIZED VIEWS WHERE name > 'x' OR true", "InvalidInput", /the end of the statement is/],
  ["SHOW MATERIALIZED VIEWS LIMIT -1", "InvalidInput", /a number of views is expected/],
  ["SHOW MATERIALIZED VIEWS LIMIT 1.5", "InvalidInput", /the end of the statement is expected/],
  ["SHOW MATERIALIZED VIEWS LIMIT 99999999999999999999", "InvalidInput", /a number of views is expected/],
  ["SHOW MATERIALIZED VIEWS WHERE name > 'x", "InvalidInput", /a string is expected/],
  ["EXPLAIN REFRESH MATERIALIZED VIEW v", "InvalidInput", /./],
  ["SELECT 1; REFRESH MATERIALIZED VIEW v", "InvalidInput", /./],
];

test.each(REFUSED)("makes no call for %s", async (statement, kind, text) => {
  const failure = await attempt(statement).then(
    ({ calls }) => assert.fail(`it makes the calls ${JSON.stringify(calls)}`),
    (thrown) => thrown,
  );
  assert.ok(failure instanceof LanceError, String(failure));
  assert.match(failure.message, text);
  assert.equal(failure.kind, kind);
});
