import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, type TestContext, test } from "vitest";
import {
  openClient,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../test/fixtures/dir/rows.ts";
import { commitAsClient } from "../../../../test/fixtures/dir/staged-commit.ts";
import { createDiskBucket } from "../../../../test/support/disk-bucket.ts";
import type { Call } from "../../../namespace/call/call.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { UpkeepMetrics, UpkeepRun } from "../../../namespace/figures.ts";
import type { NameRule } from "../../../namespace/identifier.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import type { ObjectStore } from "../format/storage.ts";
import { createStorageClock } from "../format/storage-clock.ts";
import { openDirectory } from "../open-directory.ts";
import { createReadAhead, type ReadAhead } from "../operations/read/read-ahead.ts";
import { createRemoteStore } from "../stores/remote-store.ts";
import { MAX_ACTIVE, UPKEEP_TIMES } from "./activity.ts";
import { createDirectoryTables } from "./directory-tables.ts";
import { createUpkeepLeases } from "./lease.ts";
import { noteWrites, startUpkeep, sweepTables, type UpkeepOptions } from "./upkeep.ts";
import type { TendedTable } from "./upkeep-tables.ts";

const QUICK: UpkeepOptions = {
  times: {
    ...UPKEEP_TIMES,
    settleMs: 20,
    waitMs: 100,
    quietMs: 50,
    busyMs: 20,
    retryMs: 20,
    minAgeMs: 0,
    replacedMs: 0,
  },
};

/** Opens a directory with a table `t`, whose rows come in separate writes. */
async function openTable(
  t: TestContext,
  { upkeep = QUICK, readAhead, names, adds = 20, properties = {} }: OpenOptions = {},
): Promise<{ client: TestClient; root: string }> {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root, { upkeep, readAhead, names });
  await client.upload("createTable", "t", { properties }, rows([0]));
  for (let id = 1; id <= adds; id++) await client.upload("insertIntoTable", "t", {}, rows([id]));
  return { client, root };
}

interface OpenOptions {
  readonly upkeep?: UpkeepOptions;
  readonly readAhead?: ReadAhead;
  readonly names?: NameRule;
  readonly adds?: number;
  readonly properties?: Record<string, string>;
}

const fragmentsOf = async (client: TestClient, id = "t") =>
  Number((await client.call("getTableStats", id)).fragmentStats?.numFragments);

const versionsOf = (root: string) =>
  readdirSync(join(root, "data", "t.lance", "_versions")).filter((name) => name.endsWith(".manifest")).length;

test("joins the fragments of small writes and keeps their rows", async (t) => {
  const { client } = await openTable(t);
  await expect.poll(() => fragmentsOf(client)).toBe(1);
  const ids = idsOf(await client.query("t", { k: 100n, vector: { singleVector: [0, 0] } }));
  assert.deepEqual(
    ids.sort((a, b) => a - b),
    Array.from({ length: 21 }, (_, id) => id),
  );
});

test("looks after tables in a bucket that two gateways share", async (t) => {
  const root = await temporaryDirectory(t);
  const disk = createLocalStore();
  const plain = createRemoteStore(createDiskBucket(disk));
  const store = { ...plain, uriOf: disk.uriOf, keyOf: disk.keyOf };
  const options = { storage: { store, root: disk.keyOf(root), engineOptions: {} }, upkeep: QUICK };
  const clients = [await openClient(t, root, options), await openClient(t, root, options)] as const;
  await clients[0].upload("createTable", "t", {}, rows([0]));
  await clients[0].call("createTableScalarIndex", "t", { column: "id", indexType: "BTREE", name: "by_id" });
  for (let id = 1; id <= 10; id++)
    await Promise.all(
      clients.map((client, at) => client.upload("insertIntoTable", "t", {}, rows([id + 10 * at]))),
    );
  await expect.poll(() => Promise.all(clients.map((client) => fragmentsOf(client)))).toEqual([1, 1]);
  const stats = () => clients[1].call("describeTableIndexStats", "t", { indexName: "by_id" });
  // A commit of its own follows the one that joins the fragments.
  await expect.poll(async () => (await stats()).numUnindexedRows).toBe(0n);
  const ids = idsOf(await clients[1].query("t", { k: 100n, vector: { singleVector: [0, 0] } }));
  assert.deepEqual(
    ids.sort((a, b) => a - b),
    Array.from({ length: 21 }, (_, id) => id),
  );
});

test("brings indices up to date after small writes", async (t) => {
  const { client } = await openTable(t, { adds: 0 });
  await client.call("createTableScalarIndex", "t", { column: "id", indexType: "BTREE", name: "by_id" });
  for (let id = 1; id <= 30; id++) await client.upload("insertIntoTable", "t", {}, rows([id, 100 + id]));
  const stats = () => client.call("describeTableIndexStats", "t", { indexName: "by_id" });
  await expect
    .poll(async () => [(await stats()).numIndexedRows, (await stats()).numUnindexedRows])
    .toEqual([61n, 0n]);
});

test("keeps the segments of an index of vectors few while rows arrive", async (t) => {
  const { client } = await openTable(t, { adds: 0 });
  const first = Array.from({ length: 299 }, (_, i) => i + 1);
  await client.upload("insertIntoTable", "t", {}, rows(first));
  await client.call("createTableIndex", "t", { column: "vector", indexType: "IVF_FLAT", name: "near" });
  const stats = () => client.call("describeTableIndexStats", "t", { indexName: "near" });
  for (let id = 300; id < 312; id++) {
    await client.upload("insertIntoTable", "t", {}, rows([id]));
    await expect.poll(async () => (await stats()).numIndexedRows).toBe(BigInt(id + 1));
  }
  assert.ok(((await stats()).numIndices ?? 0) <= 8, `${(await stats()).numIndices} segments`);
});

test("waits while results take the memory, and gives its own back", async (t) => {
  const memory = createReadAhead({ maxBytes: 1024 ** 2 });
  let asked = 0;
  const readAhead = {
    ...memory,
    tryEnter: (bytes: number) => (++asked > 3 ? memory.tryEnter(bytes) : undefined),
  };
  const { client } = await openTable(t, { readAhead });
  await expect.poll(() => fragmentsOf(client)).toBe(1);
  assert.ok(asked > 3);
  await expect.poll(() => memory.held).toBe(0);
});

test("removes deleted rows from the files", async (t) => {
  const { client } = await openTable(t, { adds: 0 });
  await client.upload("insertIntoTable", "t", {}, rows(Array.from({ length: 50 }, (_, i) => i + 1)));
  await client.call("deleteFromTable", "t", { predicate: "id % 2 = 0" });
  await expect.poll(() => fragmentsOf(client)).toBe(1);
  assert.equal((await client.call("getTableStats", "t")).numRows, 25n);
});

test("prunes versions older than the retention and keeps tagged ones", async (t) => {
  const { client, root } = await openTable(t, { adds: 0 });
  await client.upload("insertIntoTable", "t", {}, rows([1]));
  await client.call("createTableTag", "t", { tag: "kept", version: 2n });
  await client.call("updateTable", "t", {
    updates: [{ column: "name", expression: "'new'" }],
    properties: { "lance-gateway.upkeep.retention": "0s" },
  });
  await client.upload("insertIntoTable", "t", {}, rows([2]));
  await expect.poll(() => versionsOf(root)).toBe(2);
  assert.deepEqual(
    idsOf(await client.query("t", { version: 2n, k: 10n, vector: { singleVector: [0, 0] } })),
    [0, 1],
  );
});

test("counts its work, and the tables on which another process works", async (t) => {
  const runs: UpkeepRun[] = [];
  const missed: string[] = [];
  let waiting = () => Number.NaN;
  const metrics: UpkeepMetrics = {
    done: (run) => void runs.push(run),
    missed: (outcome) => void missed.push(outcome),
    watch: (read) => {
      waiting = read;
      return () => {};
    },
  };
  const { client, root } = await openTable(t, { upkeep: { ...QUICK, metrics } });
  await expect.poll(() => fragmentsOf(client)).toBe(1);
  await expect.poll(() => waiting()).toBe(0);
  assert.equal(runs.reduce((sum, { fragmentsRemoved }) => sum + fragmentsRemoved, 0) >= 21, true);
  assert.deepEqual(missed, []);

  const store = createLocalStore(root);
  const lease = await createUpkeepLeases("data", store, createStorageClock(store, "data")).acquire("t.lance");
  t.onTestFinished(() => lease?.abandon());
  await client.upload("insertIntoTable", "t", {}, rows([100]));
  await expect.poll(() => missed).toEqual(["leased"]);
});

test("deletes the leases of tables that are gone, and keeps the others", async (t) => {
  const upkeep = { times: { ...QUICK.times, sweepMs: 50, lookMs: 1, commitQuietMs: 0 } };
  const { client, root } = await openTable(t, { upkeep });
  const leases = () => readdirSync(join(root, "data", ".upkeep")).sort();
  await client.upload("createTable", "kept", {}, rows([0]));
  await client.upload("insertIntoTable", "kept", {}, rows([1]));
  await expect.poll(leases).toEqual(["kept.lance", "t.lance"]);
  await client.call("dropTable", "t");
  await expect.poll(leases).toEqual(["kept.lance"]);
});

test("looks after a table whose escaped name is too long for a file, and deletes its lease once it is gone", async (t) => {
  const upkeep = { times: { ...QUICK.times, sweepMs: 50, lookMs: 1, commitQuietMs: 0 } };
  const { client, root } = await openTable(t, { upkeep, names: "unicode" });
  const name = "\u8868".repeat(80);
  const leases = () => readdirSync(join(root, "data", ".upkeep")).length;
  await client.upload("createTable", name, {}, rows([0]));
  await client.upload("insertIntoTable", name, {}, rows([1]));
  await expect.poll(leases).toBe(2);
  await client.call("dropTable", name);
  await expect.poll(leases).toBe(1);
});

test("leaves a table alone whose property says off", async (t) => {
  const { client } = await openTable(t, { properties: { "lance-gateway.upkeep": "off" } });
  await untilOtherIsJoined(client);
  assert.equal(await fragmentsOf(client), 21);
});

test("leaves the fragments of a table alone for a while after a commit of a client", async (t) => {
  // No inspection may be in flight when the client commits.
  const upkeep = { times: { ...QUICK.times, settleMs: 1_000, waitMs: 3_000 } };
  const { client, root } = await openTable(t, { upkeep, adds: 0 });
  await commitAsClient(client, await openClient(t, root, { maintenance: false }), 1);
  for (let id = 2; id <= 20; id++) await client.upload("insertIntoTable", "t", {}, rows([id]));
  await untilOtherIsJoined(client);
  assert.equal(await fragmentsOf(client), 21);
});

test("joins the fragments of a table when its clients have not committed for a while", async (t) => {
  const upkeep = { times: { ...QUICK.times, commitQuietMs: 100 } };
  const { client, root } = await openTable(t, { upkeep, adds: 0 });
  await commitAsClient(client, await openClient(t, root, { maintenance: false }), 1);
  await expect.poll(() => fragmentsOf(client)).toBe(1);
});

test("a gateway that ends finishes its work on a table and gives the lease back", async (t) => {
  const { client, root } = await openTable(t);
  const directory = join(root, "data", ".upkeep", "t.lance");
  const contents = () =>
    readdirSync(directory)
      .filter((name) => /^\d+$/.test(name))
      .map((name) => readFileSync(join(directory, name), "utf8"));
  await expect.poll(() => existsSync(directory)).toBe(true);
  await client.upload("insertIntoTable", "t", {}, rows([21]));
  await client.close();
  assert.deepEqual(contents(), ["released"]);
});

describe("a gateway that starts beside a table which others write", () => {
  const sweeping = { ...QUICK, times: { ...QUICK.times, sweepMs: 50, lookMs: 1 } };
  const leaseOf = (root: string, table: string) => join(root, "data", ".upkeep", `${table}.lance`);
  const isNoted = (root: string, table: string) => existsSync(join(leaseOf(root, table), "optimized"));

  /** Waits until a table is looked after and its lease is free: a gateway that ends during a run keeps it for a minute. */
  async function untilDone(client: TestClient, root: string, table: string): Promise<void> {
    await expect.poll(() => fragmentsOf(client, table)).toBe(1);
    const released = () => {
      const files = readdirSync(leaseOf(root, table)).map((name) => join(leaseOf(root, table), name));
      return files.some((file) => readFileSync(file, "utf8") === "released");
    };
    await expect.poll(() => isNoted(root, table) && released()).toBe(true);
  }

  async function add(client: TestClient, table: string, from: number): Promise<void> {
    for (let id = from; id < from + 20; id++) await client.upload("insertIntoTable", table, {}, rows([id]));
  }

  test("joins its fragments when a gateway has looked after it", async (t) => {
    const { client, root } = await openTable(t);
    await untilDone(client, root, "t");
    await client.close();
    const writer = await openClient(t, root, { maintenance: false });
    await add(writer, "t", 30);
    await openClient(t, root, { upkeep: sweeping });
    await expect.poll(() => fragmentsOf(writer)).toBe(1);
  });

  test("leaves its fragments alone for a while when a client has committed since then", async (t) => {
    const { client, root } = await openTable(t);
    // The sweep looks at this table after the other one.
    await client.upload("createTable", "u", {}, rows([0]));
    await add(client, "u", 1);
    for (const table of ["t", "u"]) await untilDone(client, root, table);
    const writer = await openClient(t, root, { maintenance: false });
    await commitAsClient(client, writer, 60);
    await expect.poll(() => isNoted(root, "t")).toBe(false);
    await client.close();
    for (const table of ["t", "u"]) await add(writer, table, 30);
    await openClient(t, root, { upkeep: sweeping });
    await expect.poll(() => fragmentsOf(writer, "u")).toBe(1);
    assert.ok((await fragmentsOf(writer)) > 20);
  });
});

/** Writes small fragments to a table `other`, and waits until they are joined. */
async function untilOtherIsJoined(client: TestClient): Promise<void> {
  await client.upload("createTable", "other", {}, rows([0]));
  for (let id = 1; id <= 20; id++) await client.upload("insertIntoTable", "other", {}, rows([id]));
  await expect.poll(() => fragmentsOf(client, "other")).toBe(1);
}

test("upkeep says once that more tables wait than it remembers", async () => {
  const logged: string[] = [];
  const log = pino({ level: "warn" }, { write: (line) => void logged.push(JSON.parse(line).msg) });
  const tables = {
    readAhead: createReadAhead({ maxBytes: 0 }),
    times: {},
    async *walk() {},
    withTable: async () => undefined,
  };
  const upkeep = startUpkeep(tables, log, { sweeps: false });
  for (let at = 0; at < MAX_ACTIVE; at += 1) upkeep.note([`t${at}`]);
  assert.deepEqual(logged, []);
  for (let at = 0; at < 3; at += 1) upkeep.note([`u${at}`]);
  assert.match(String(logged), /^more tables wait for upkeep than are remembered/);
  assert.equal(logged.length, 1);
  await upkeep.close();
});

const TABLES = ["a", "b", "c"];

/** Opens a directory with tables through a store, and returns its context. */
async function openTables(t: TestContext, store: ObjectStore) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  for (const table of TABLES) await client.upload("createTable", table, {}, rows([0]));
  const storage = { store, root, engineOptions: {} };
  const { context, close } = await openDirectory({ root, storage, log: silent });
  t.onTestFinished(close);
  return context;
}

test("a table that cannot be read does not end the look at the others", async (t) => {
  const files = createLocalStore();
  const store: ObjectStore = {
    ...files,
    list(directory) {
      if (directory.endsWith("/a.lance/_versions"))
        throw new LanceError("ServiceUnavailable", "this directory is on a bad sector");
      return files.list(directory);
    },
  };
  const context = await openTables(t, store);
  const reported: string[] = [];
  const stop = new AbortController();
  const report = async ({ table }: TendedTable) => void reported.push(String(table.id[0]));
  const times = { sweepMs: 60_000, lookMs: 1, relookMs: 60_000 };
  const sweeping = sweepTables(createDirectoryTables(context), times, report, silent, stop.signal);
  await expect.poll(() => reported).toEqual(["b", "c"]);
  stop.abort();
  await sweeping;
});

test("interrupted changes are finished during a long round, too", async (t) => {
  const context = await openTables(t, createLocalStore());
  const events: string[] = [];
  const journal: typeof context.journal = {
    ...context.journal,
    abandoned() {
      events.push("resolve");
      return context.journal.abandoned();
    },
  };
  const stop = new AbortController();
  const report = async ({ table }: TendedTable) => {
    const name = String(table.id[0]);
    events.push(name);
    if (name === TABLES.at(-1)) stop.abort();
  };
  const times = { sweepMs: 1, lookMs: 5, relookMs: 60_000 };
  await sweepTables(createDirectoryTables({ ...context, journal }), times, report, silent, stop.signal);
  assert.ok(events.indexOf("resolve") < events.indexOf("b"), events.join(" "));
});

test("only operations that may write data are noted, also those that fail", async () => {
  const noted: unknown[] = [];
  const done = async () => ({});
  const operations = {
    describeTable: done,
    createNamespace: done,
    declareTable: done,
    createTableVersion: done,
    // Its call names no object, which would mean all tables.
    finishDriverTask: done,
    async insertIntoTable() {
      throw new Error("refused");
    },
  } as object;
  const all = noteWrites((id, by) => noted.push([...id, by]), { operations }).operations ?? {};
  for (const [name, operation] of Object.entries(all))
    await (operation as (request: object, call: Call) => Promise<unknown>)({}, { id: [name] } as never).catch(
      () => {},
    );
  assert.deepEqual(noted, [
    ["createTableVersion", "client"],
    ["insertIntoTable", "gateway"],
  ]);
});
