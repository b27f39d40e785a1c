import assert from "node:assert/strict";
import { tableFromArrays } from "apache-arrow";
import { afterAll, expect, test } from "vitest";
import { runSql, tablesInMemory } from "../../test/fixtures/sql.ts";
import { LanceError } from "../namespace/errors.ts";
import { createSqlEngine } from "./create-engine.ts";
import type { SqlTables } from "./sql-engine.ts";

const engine = createSqlEngine({ memoryMib: 128, keptMib: 0, timeoutMs: 15_000 });
afterAll(() => engine.close());

const t = tableFromArrays({ id: Int32Array.of(1, 2, 3), s: ["a", "b", "c"], pin: ["x", "y", "z"] });
const u = tableFromArrays({ id: Int32Array.of(1) });

/** Tables and views of a root, where `name` of the database `lance` is `name`, too. */
function withViews(views: Readonly<Record<string, string>>): SqlTables {
  const inMemory = tablesInMemory({ t, u });
  return {
    ...inMemory,
    async open(name, signal) {
      const query = views[name.path.join(".")];
      return query === undefined ? inMemory.open(name, signal) : { ...name, query, namespacePath: [] };
    },
  };
}

/** Returns the rows of a result as a text. */
async function rowsOf(statement: string, tables: SqlTables): Promise<string> {
  const rows = (await runSql(engine, statement, { tables })).toArray();
  return rows.map((row) => Object.values(row.toJSON()).map(String).join(" ")).join(",");
}

test.each([
  ["FROM v", "1 a,2 b"],
  ['FROM "v" ORDER BY id DESC', "2 b,1 a"],
  ["SELECT public.v.id FROM public.v", "1,2"],
  ["SELECT x.id FROM public.v AS x", "1,2"],
  ["SELECT b, a FROM v AS x(a, b)", "a 1,b 2"],
  ["WITH v AS (SELECT 7 AS id) FROM v", "7"],
  ["WITH v AS (FROM v) FROM v", "1 a,2 b"],
  ["WITH RECURSIVE v AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM v WHERE id < 3) FROM v", "1,2,3"],
  [
    "WITH RECURSIVE r AS (SELECT 1 AS id UNION ALL SELECT v.id + 1 FROM v, r WHERE v.id = r.id) FROM r",
    "1,2,3",
  ],
  ["WITH t AS (SELECT 7 AS id, 'z' AS s) FROM v", "1 a,2 b"],
  ["SELECT count(*) FROM v USING SAMPLE 1", "1"],
  ["SELECT count(*) FROM v TABLESAMPLE reservoir(1 ROWS)", "1"],
  ["SELECT a.id, w.s FROM v a JOIN w USING (id)", "2 b"],
  ["SELECT id FROM v UNION ALL SELECT id FROM w", "1,2,2"],
  ["SELECT (SELECT count(*) FROM v WHERE v.id <= t.id) FROM t", "1,2,2"],
  ["SELECT id FROM v WHERE id = 1 LIMIT 1", "1"],
  ["SELECT column_name, column_type FROM (DESCRIBE w)", "id INTEGER,s VARCHAR"],
  ["SELECT max FROM (SUMMARIZE v)", "2,b"],
  ["FROM (PIVOT w ON s IN ('b') USING count(*))", "2 1"],
  ["SELECT * EXCLUDE (s) FROM v", "1,2"],
])("are read by %s", async (statement, rows) => {
  const tables = withViews({ v: "SELECT id, s FROM t WHERE id < 3", w: "FROM v WHERE id > 1" });
  assert.equal(await rowsOf(statement, tables), rows);
});

test("have conditions that reach their tables", async () => {
  const views = withViews({ v: "SELECT id, s FROM t WHERE id < 3", w: "FROM v WHERE id > 1" });
  const filters: (string | undefined)[] = [];
  const scan: SqlTables["scan"] = (table, what, signal) => {
    filters.push(what.filter);
    return views.scan(table, what, signal);
  };
  await rowsOf("SELECT s FROM w", { ...views, scan });
  assert.deepEqual(filters.map(String), ["`id` < 3"]);
});

test.each(["DESCRIBE v", "SUMMARIZE v"])("are told by %s", async (statement) => {
  assert.match(
    await rowsOf(statement, withViews({ v: "SUMMARIZE w", w: "FROM t" })),
    /^column_name VARCHAR /,
  );
});

test.each([
  "FROM t, v",
  "SELECT (SELECT max(s) FROM v) FROM t",
  "FROM t WHERE EXISTS (FROM v)",
  "FROM t, LATERAL (FROM w)",
])("see no columns of %s in place of their own", async (statement) => {
  for (const query of ["SELECT pin AS s FROM u", "SELECT t.pin AS s FROM u"])
    await expect(rowsOf(statement, withViews({ v: query, w: "FROM v" }))).rejects.toThrow(
      /"(?:pin|t)" not found/,
    );
});

/** Queries that no statement has stored. */
const FORGED: readonly string[] = [
  "SELECT 1 AS one\0 FROM secret",
  `SELECT 1 AS one${" ".repeat(300_000)}`,
  `SELECT ${"NOT ".repeat(2_000)}true`,
  "SELECT 1; SELECT 2",
  "DROP TABLE t",
  "CREATE VIEW x AS SELECT 1",
  "SELECT $1 AS one",
  "SELECT 1 LIMIT ?",
  "FROM read_csv('/etc/passwd')",
  "FROM lance_gateway_scan(0)",
  "FROM lance_gateway_view_0",
  "WITH lance_gateway_view_0 AS (SELECT 1) FROM lance_gateway_view_0",
  "FROM kept.t0",
  "FROM lance.t",
  "FROM v",
  "FROM t AT (VERSION => 'x', 1)",
  "SHOW TABLES",
  "",
];

test.each(FORGED.map((query) => [query.slice(0, 40), query]))("run nothing of %j", async (_text, query) => {
  for (const statement of ["FROM v", "SELECT (SELECT count(*) FROM v)", "FROM t, v"]) {
    const failure = await rowsOf(statement, withViews({ v: query })).catch((thrown) => thrown);
    assert.ok(failure instanceof LanceError, String(failure));
    assert.match(failure.kind, /^(?:InvalidInput|Unsupported|TableNotFound)$/);
  }
  assert.equal(await rowsOf("SELECT 1", withViews({})), "1");
});

test("cannot be replaced by expressions of a statement", async () => {
  const statement = "WITH LANCE_gateway_view_0 AS (SELECT 9 AS id) SELECT id FROM v";
  await expect(rowsOf(statement, withViews({ v: "FROM u" }))).rejects.toThrow(/lance_gateway_view_0/i);
});

test("are told apart from tables whose names begin with a database", async () => {
  const names = [undefined, "lance"];
  for (const [i, view] of names.entries()) {
    const views = withViews({ x: "SELECT 5 AS id" });
    const own: SqlTables = {
      ...views,
      open: (name, signal) =>
        name.path[0] === "x" && name.database !== view
          ? tablesInMemory({ x: u }).open(name, signal)
          : views.open(name, signal),
      scan: (_table, what, signal) => views.scan({ path: ["u"] } as never, what, signal),
    };
    assert.equal(
      await rowsOf("SELECT a.id AS a, b.id AS b FROM x AS a, lance.public.x AS b", own),
      i === 0 ? "5 1" : "1 5",
    );
  }
});
