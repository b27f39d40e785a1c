import assert from "node:assert/strict";
import { Table, tableFromArrays, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { afterAll, test } from "vitest";
import { runSql, tablesInMemory } from "../../test/fixtures/sql.ts";
import { createSqlEngine } from "./create-engine.ts";
import type { SqlEngine, SqlTables } from "./sql-engine.ts";

const engine = createSqlEngine();
afterAll(() => engine.close());

const rows = (from: number) =>
  tableFromArrays({
    id: Int32Array.from({ length: 100 }, (_, i) => from + i),
    name: Array.from({ length: 100 }, (_, i) => `name ${from + i}`),
  });

/** A table at version 3, whose rows and state may change, and which counts its scans. */
function watchedTable(table: Table) {
  const watched: { table: Table; state: string | undefined; scans: number; asked: number } = {
    ...{ table, state: "first", scans: 0, asked: 0 },
  };
  const source = () => tablesInMemory({ t: watched.table });
  const tables: SqlTables = {
    open: async (name, signal) => ({ ...(await source().open(name, signal)), version: 3n }),
    scan(...args) {
      watched.scans++;
      return source().scan(...args);
    },
    async stateOf() {
      watched.asked++;
      return watched.state;
    },
  };
  return { watched, tables };
}

async function first(sql: string, tables: SqlTables, caller = "ada", by: SqlEngine = engine) {
  const table = await runSql(by, sql, { tables, caller });
  return table.get(0)?.toJSON();
}

const SUM = "SELECT sum(id)::INTEGER AS s, max(name) AS m, count(*)::INTEGER AS n FROM t";

/** Reads a table until it is kept. */
async function keep(tables: SqlTables, caller?: string): Promise<void> {
  for (let i = 0; i < 3; i++) await first(SUM, tables, caller);
}

test("a table that statements read again and again is read once more as a whole, and then kept", async () => {
  const { watched, tables } = watchedTable(rows(0));
  await keep(tables);
  const { scans } = watched;
  assert.ok(scans <= 3);
  assert.deepEqual(await first(SUM, tables), { s: 4950, m: "name 99", n: 100 });
  assert.deepEqual(await first("SELECT u.* FROM t AS u WHERE u.id = 7", tables), { id: 7, name: "name 7" });
  assert.deepEqual(await first("SELECT a FROM t AS u(a, b) WHERE b = 'name 8'", tables), { a: 8 });
  assert.deepEqual(await first("WITH t AS (SELECT id FROM t) SELECT max(t.id) AS m FROM t", tables), {
    m: 99,
  });
  assert.equal(watched.scans, scans);
});

test("a kept table is asked for its state by each run, and read again in another state", async () => {
  const { watched, tables } = watchedTable(rows(0));
  await keep(tables);
  const { asked } = watched;
  assert.deepEqual(await first(SUM, tables), { s: 4950, m: "name 99", n: 100 });
  assert.equal(watched.asked, asked + 1);
  Object.assign(watched, { table: rows(1000), state: "second" });
  assert.deepEqual(await first(SUM, tables), { s: 104_950, m: "name 1099", n: 100 });
});

test("a caller who may no longer read a kept table is refused", async () => {
  const { tables } = watchedTable(rows(0));
  await keep(tables);
  const denied: SqlTables = { ...tables, stateOf: () => Promise.reject(new Error("denied")) };
  await assert.rejects(first(SUM, denied), /denied/);
});

test("what is kept for a caller serves no other one", async () => {
  const { watched, tables } = watchedTable(rows(0));
  await keep(tables, "ada");
  Object.assign(watched, { table: rows(1000) });
  assert.deepEqual(await first(SUM, tables, "grace"), { s: 104_950, m: "name 1099", n: 100 });
});

test("a statement cannot name a kept table, and a row has no rowid", async () => {
  const { tables } = watchedTable(rows(0));
  await keep(tables);
  for (let i = 0; i < 10; i++)
    await assert.rejects(first(`SELECT * FROM kept.t${i}`, tables), { kind: "TableNotFound" });
  await assert.rejects(first("SELECT max(rowid) FROM t", tables), { kind: "InvalidInput" });
});

test("keeps no table without a state, and none where none may be kept", async () => {
  const { watched: stateless, tables: unknown } = watchedTable(rows(0));
  stateless.state = undefined;
  await keep(unknown);
  assert.equal(stateless.scans, 3);

  const small = createSqlEngine({ keptMib: 0 });
  try {
    const { watched, tables } = watchedTable(rows(0));
    for (let i = 0; i < 4; i++) await first(SUM, tables, "ada", small);
    assert.deepEqual([watched.scans, watched.asked], [4, 0]);
  } finally {
    await small.close();
  }
});

test("drops the table that is used least recently when a further one does not fit", async () => {
  const tight = createSqlEngine({ keptMib: 1 });
  try {
    const wide = (from: number) =>
      tableFromArrays({ id: BigInt64Array.from({ length: 40_000 }, (_, i) => BigInt(from + i)) });
    const sources = Object.fromEntries(Array.from({ length: 4 }, (_, i) => [`t${i}`, wide(i)]));
    let scans = 0;
    const source = tablesInMemory(sources);
    const tables: SqlTables = {
      open: async (name, signal) => ({ ...(await source.open(name, signal)), version: 1n }),
      scan(...args) {
        scans++;
        return source.scan(...args);
      },
      stateOf: async ({ path }) => path.join("."),
    };
    for (let round = 0; round < 3; round++)
      for (let i = 0; i < 4; i++)
        assert.deepEqual(await first(`SELECT min(id)::INTEGER AS m FROM t${i}`, tables, "ada", tight), {
          m: i,
        });
    assert.ok(scans > 4 * 2);
  } finally {
    await tight.close();
  }
});

test("keeps tables in a compressed form", async () => {
  const tight = createSqlEngine({ keptMib: 1 });
  try {
    const teams = (prefix: string) =>
      tableFromArrays({ team: Array.from({ length: 60_000 }, (_, i) => `${prefix} ${i % 5}`) });
    // Each has about a megabyte as DuckDB computes with it.
    const sources = tablesInMemory({ a: teams("red"), b: teams("blue"), c: teams("green") });
    let scans = 0;
    const tables: SqlTables = {
      open: async (name, signal) => ({ ...(await sources.open(name, signal)), version: 1n }),
      scan(...args) {
        scans++;
        return sources.scan(...args);
      },
      stateOf: async ({ path }) => path.join("."),
    };
    const round = async () => {
      for (const name of ["a", "b", "c"])
        assert.match(
          String((await first(`SELECT max(team) AS m FROM ${name}`, tables, "ada", tight))?.["m"]),
          / 4$/,
        );
    };
    for (let i = 0; i < 6; i++) await round();
    const before = scans;
    await round();
    assert.equal(scans, before);
  } finally {
    await tight.close();
  }
});

test("a statement that fails beside a table that is too large to be kept fails with its own error", async () => {
  const tight = createSqlEngine({ keptMib: 1 });
  try {
    const { tables } = watchedTable(
      tableFromArrays({ id: Int32Array.of(1, 2), name: ["x".repeat(2 ** 20), "y".repeat(2 ** 20)] }),
    );
    const run = (text: string) =>
      runSql(tight, "SELECT length(max(name))::INTEGER AS n, ?::VARCHAR::INTEGER AS given FROM t", {
        ...{ tables, caller: "ada" },
        parameters: tableToIPC(new Table({ given: vectorFromArray([text], new Utf8()) }), "stream"),
      });
    assert.deepEqual((await run("5")).get(0)?.toJSON(), { n: 2 ** 20, given: 5 });
    await assert.rejects(run("x"), { kind: "InvalidInput", message: /Could not convert/ });
  } finally {
    await tight.close();
  }
});

test("keeps no table that turns out to be too large, and reads it for each statement", async () => {
  const tight = createSqlEngine({ keptMib: 1 });
  try {
    const { watched, tables } = watchedTable(
      tableFromArrays({ id: Int32Array.of(1, 2), name: ["x".repeat(2 ** 20), "y".repeat(2 ** 20)] }),
    );
    const sql = "SELECT length(max(name))::INTEGER AS n FROM t";
    for (let i = 0; i < 4; i++) assert.deepEqual(await first(sql, tables, "ada", tight), { n: 2 ** 20 });
    assert.equal(watched.scans, 5);
  } finally {
    await tight.close();
  }
});
