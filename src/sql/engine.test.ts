import assert from "node:assert/strict";
import { type Table, tableFromArrays, tableFromIPC, tableToIPC } from "apache-arrow";
import { afterAll, test } from "vitest";
import { runSql, tablesInMemory } from "../../test/fixtures/sql.ts";
import { LanceError } from "../namespace/errors.ts";
import { createSqlEngine } from "./create-engine.ts";
import type { SqlTables } from "./sql-engine.ts";

const engine = createSqlEngine({ maxRows: 50_000 });
afterAll(() => engine.close());

const t = tableFromArrays({ id: Int32Array.of(1, 2, 3), name: ["a", "b", "c"] });
const tables = tablesInMemory({ t, "ns.t": t.slice(0, 2) });
const signal = () => new AbortController().signal;
const firstOf = async (statement: string, parameters?: Uint8Array) =>
  (await runSql(engine, statement, { tables, ...(parameters && { parameters }) })).get(0)?.toJSON();

test("joins tables of several namespaces, whose columns have their full names", async () => {
  const sql = "SELECT count(*)::INTEGER AS n FROM t JOIN ns.t AS u ON t.id = u.id WHERE u.name <> 'a'";
  assert.deepEqual(await firstOf(sql), { n: 1 });
  assert.deepEqual(await firstOf("SELECT ns.t.name FROM ns.t ORDER BY ns.t.id DESC LIMIT 1"), { name: "b" });
});

test("a name without a schema is in the namespace of the call, and public is the root", async () => {
  const result = await runSql(
    engine,
    "SELECT (SELECT count(*)::INTEGER FROM t) AS n, (SELECT count(*)::INTEGER FROM public.t) AS r",
    {
      tables,
      namespacePath: ["ns"],
    },
  );
  assert.deepEqual(result.get(0)?.toJSON(), { n: 2, r: 3 });
});

test("a common table expression hides a table, and one of the same name inside of it is the table", async () => {
  assert.deepEqual(await firstOf("WITH T AS (SELECT id + 10 AS id FROM t) SELECT max(id) AS m FROM t"), {
    m: 13,
  });
});

test("reads the columns that a statement needs, and each table once per scan at one version", async () => {
  const scanned: (readonly string[])[] = [];
  const watched: SqlTables = {
    ...tables,
    scan(table, what, end) {
      scanned.push(what.columns);
      return tables.scan(table, what, end);
    },
  };
  await runSql(engine, "SELECT sum(id) FROM (SELECT * FROM t)", { tables: watched });
  await runSql(engine, "SELECT count(*) FROM t", { tables: watched });
  assert.deepEqual(scanned, [["id"], ["id"]]);
});

test("tells the columns of a result and the types of parameters before it runs", async () => {
  const prepared = await engine.prepare("SELECT name, id FROM t WHERE id > $1", { tables, signal: signal() });
  const end = Buffer.from("ffffffff00000000", "hex");
  const columns = (bytes: Uint8Array) => String(tableFromIPC(Buffer.concat([bytes, end])).schema);
  assert.match(columns(prepared.schema), /0: name: Utf8.*1: id: Int32/s);
  assert.match(columns(prepared.parameters), /0: 1: Int32/);
});

test("a statement that is prepared again reads the tables as they are then", async () => {
  const rows: Record<string, Table> = { grows: t.slice(0, 0) };
  const growing: SqlTables = {
    open: (name, end) => tablesInMemory(rows).open(name, end),
    scan: (...args) => tablesInMemory(rows).scan(...args),
  };
  const count = async () =>
    (await runSql(engine, "SELECT count(*)::INTEGER AS n, max(id) AS m FROM grows", { tables: growing }))
      .get(0)
      ?.toJSON();
  assert.deepEqual(await count(), { n: 0, m: null });
  rows["grows"] = t;
  assert.deepEqual(await count(), { n: 3, m: 3 });
  assert.deepEqual(await count(), { n: 3, m: 3 });
  rows["grows"] = tableFromArrays({ id: BigInt64Array.of(5n), other: ["x"] });
  assert.deepEqual(await count(), { n: 1, m: 5n });
  rows["grows"] = tableFromArrays({ other: ["x"] });
  await assert.rejects(count(), /"id" not found/);
});

test("a prepared statement runs again with other parameters, and after others", async () => {
  const prepared = await engine.prepare("SELECT name FROM t WHERE id = ?", { tables, signal: signal() });
  const nameOf = async (id: number) => {
    const messages: Uint8Array[] = [];
    const row = tableToIPC(tableFromArrays({ id: Int32Array.of(id) }), "stream");
    for await (const message of prepared.run(row, signal())) messages.push(message);
    return tableFromIPC(Buffer.concat(messages)).get(0)?.["name"];
  };
  assert.equal(await nameOf(2), "b");
  for (let i = 0; i < 20; i++) await firstOf(`SELECT ${i} AS i`);
  assert.equal(await nameOf(3), "c");
});

test("binds parameters of every kind", async () => {
  const parameters = tableToIPC(
    tableFromArrays({
      a: Int32Array.of(2),
      b: BigInt64Array.of(2n ** 53n + 1n),
      c: ["x"],
      d: Float64Array.of(0.5),
    }),
    "stream",
  );
  const row = await firstOf("SELECT id, $2 AS big, $3 AS s, $4 AS d FROM t WHERE id = $1", parameters);
  assert.deepEqual(row, { id: 2, big: 2n ** 53n + 1n, s: "x", d: 0.5 });
  await assert.rejects(firstOf("SELECT ?"), /the statement has 1 parameters, and none is given/);
});

test("a statement that runs again has the same whole messages, in several batches and without rows", async () => {
  for (const [statement, batches] of [
    ["SELECT range::INTEGER AS n, range::VARCHAR AS s FROM range(40000)", 4],
    ["SELECT id FROM t WHERE id > 5", 0],
  ] as const) {
    const prepared = await engine.prepare(statement, { tables, signal: signal() });
    const run = async () => {
      const messages: Uint8Array[] = [];
      for await (const message of prepared.run(undefined, signal())) messages.push(message);
      return messages;
    };
    const first = await run();
    assert.deepEqual(first[0], prepared.schema);
    assert.equal(first.length, 1 + batches);
    assert.deepEqual(await run(), first);
  }
});

test("parameters of other types make other columns", async () => {
  const prepared = await engine.prepare("SELECT $1 AS p", { tables, signal: signal() });
  for (const p of [["a"], BigInt64Array.of(1n), Float64Array.of(0.5), ["b"]]) {
    const own: Table = tableFromArrays({ p });
    const messages: Uint8Array[] = [];
    for await (const message of prepared.run(tableToIPC(own, "stream"), signal())) messages.push(message);
    assert.equal(tableFromIPC(Buffer.concat(messages)).get(0)?.["p"], p[0]);
  }
});

test("a result of too many rows is refused", async () => {
  await assert.rejects(firstOf("FROM range(50001)"), /more than 50000 rows/);
});

test("a statement ends when its caller leaves, and the next one runs", async () => {
  const leaving = new AbortController();
  setTimeout(() => leaving.abort(), 300);
  const begun = performance.now();
  await assert.rejects(
    runSql(engine, "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = -1", {
      tables,
      signal: leaving.signal,
    }),
    (thrown) => thrown instanceof LanceError && thrown.kind === "Cancelled",
  );
  assert.ok(performance.now() - begun < 3_000);
  assert.deepEqual(await firstOf("SELECT 1 AS one"), { one: 1 });
});

test("a reader that leaves a result ends the scans of its tables", async () => {
  let ended = false;
  const endless: SqlTables = {
    ...tables,
    async *scan() {
      try {
        const bytes = tableToIPC(t, "stream");
        const [head, batch] = [tableToIPC(t.slice(0, 0), "stream").byteLength - 8, bytes.byteLength - 8];
        yield bytes.subarray(0, head);
        for (;;) yield bytes.subarray(head, batch);
      } finally {
        ended = true;
      }
    },
  };
  const prepared = await engine.prepare("SELECT * FROM t LIMIT 40000", { tables: endless, signal: signal() });
  for await (const _ of prepared.run(undefined, signal())) break;
  assert.ok(ended);
});

test("an error of a table is the error of the statement", async () => {
  const failing: SqlTables = {
    ...tables,
    async *scan() {
      yield* [];
      throw new LanceError("PermissionDenied", "no");
    },
  };
  await assert.rejects(
    runSql(engine, "FROM t", { tables: failing }),
    (thrown) => thrown instanceof LanceError && thrown.kind === "PermissionDenied",
  );
});

test("statements of a caller run one after the other, and past a number of them the next is refused", async () => {
  const small = createSqlEngine({ maxRunning: 1, maxWaiting: 1 });
  try {
    const run = () => runSql(small, "SELECT count(*) FROM range(1000000)");
    const results = await Promise.allSettled([run(), run(), run()]);
    const refused = results.filter((result) => result.status === "rejected");
    assert.equal(refused.length, 1);
    assert.match(String(refused[0]?.reason), /no more than 1 SQL statements may wait/);
  } finally {
  }
});
