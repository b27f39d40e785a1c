import assert from "node:assert/strict";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { expect, test } from "vitest";
import { failsWith, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { toIpcFile } from "../../../arrow/ipc/file.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { createHandles } from "./handles.ts";
import type { NativeTable } from "./native/native.ts";
import { createWatcher } from "./watch.ts";
import { createDeletionFiles } from "./workarounds/deletion-lengths/deletion-files.ts";

const store = createLocalStore();
const watch = createWatcher(store);
const deletionsOf = (location: string) => createDeletionFiles({ store, root: store.keyOf(location) });

/** Returns tables that record whether they are open; a closed one cannot be used, one in use cannot be closed. */
function fakeTables(checkout: () => Promise<void> = async () => {}) {
  const open = new Set<string>();
  return {
    open,
    async openTable(location: string): Promise<NativeTable> {
      open.add(location);
      let running = 0;
      const table = {
        async checkoutLatest() {
          running++;
          await checkout().finally(() => running--);
        },
        version: async () => 1,
        close() {
          if (running > 0) throw new Error("it is in use");
          open.delete(location);
        },
      };
      return table as Partial<NativeTable> as NativeTable;
    },
  };
}

async function makeTable(root: string, name: string): Promise<string> {
  await mkdir(join(root, name, "_versions"), { recursive: true });
  await writeFile(join(root, name, "_versions", "1.manifest"), "");
  return join(root, name);
}

test("handles stay open up to their number, and those in use beyond it", async (t) => {
  const root = await temporaryDirectory(t);
  const tables = fakeTables();
  const handles = createHandles({ max: 2, idleMs: 60_000, watch, deletionsOf }, tables.openTable);
  t.onTestFinished(handles.closeAll);
  const paths = await Promise.all(["a", "b", "c", "d"].map((name) => makeTable(root, name)));
  const leases = [];
  for (const path of paths) leases.push(await handles.acquire(path));
  assert.equal(tables.open.size, 4);
  for (const lease of leases) lease.release();
  assert.equal(tables.open.size, 2);
  (await handles.acquire(paths[1] as string)).release();
  (await handles.acquire(await makeTable(root, "e"))).release();
  assert.deepEqual([...tables.open].map((path) => path.at(-1)).sort(), ["b", "e"]);
});

test("the use of a handle counts until its end, also when another call has made the handle be forgotten", async (t) => {
  const root = await temporaryDirectory(t);
  const handles = createHandles({ max: 10, idleMs: 60_000, watch, deletionsOf }, fakeTables().openTable);
  t.onTestFinished(handles.closeAll);
  const [path, other] = [await makeTable(root, "t"), await makeTable(root, "other")];
  const lease = await handles.acquire(path);
  await sleep(5);
  handles.forget(path);
  assert.ok(handles.longestUse(path) > 0);
  (await handles.acquire(path)).release();
  assert.ok(handles.longestUse(path) > 0);
  assert.equal(handles.longestUse(other), 0);
  lease.release();
  assert.equal(handles.longestUse(path), 0);
});

test("a handle that nobody uses is closed after a time, one in use is not", async (t) => {
  const root = await temporaryDirectory(t);
  const tables = fakeTables();
  const handles = createHandles({ max: 10, idleMs: 40, watch, deletionsOf }, tables.openTable);
  t.onTestFinished(handles.closeAll);
  const [idle, used] = [await makeTable(root, "idle"), await makeTable(root, "used")];
  const lease = await handles.acquire(used);
  (await handles.acquire(idle)).release();
  const keepAlive = setInterval(() => {}, 1000);
  while (tables.open.has(idle)) await sleep(5);
  clearInterval(keepAlive);
  assert.deepEqual([...tables.open], [used]);
  lease.release();
  assert.equal((await handles.acquire(idle)).table === lease.table, false);
});

test("a location is checked before it is opened, and not again while the same directory is there", async (t) => {
  const root = await temporaryDirectory(t);
  const handles = createHandles({ max: 10, idleMs: 60_000, watch, deletionsOf }, fakeTables().openTable);
  t.onTestFinished(handles.closeAll);
  const path = await makeTable(root, "t");
  let checks = 0;
  const check = async () => {
    checks++;
  };
  for (let i = 0; i < 3; i++) (await handles.acquire(path, check)).release();
  assert.equal(checks, 1);
  await rm(path, { recursive: true });
  await makeTable(root, "other");
  await makeTable(root, "t");
  (await handles.acquire(path, check)).release();
  assert.equal(checks, 2);
});

test("a table that is forgotten while it is brought up to date is closed when the engine is done", async (t) => {
  const root = await temporaryDirectory(t);
  const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let slow = false;
  const tables = fakeTables(async () => {
    if (!slow) return;
    begun.resolve();
    await gate.promise;
  });
  const handles = createHandles({ max: 10, idleMs: 60_000, watch, deletionsOf }, tables.openTable);
  t.onTestFinished(handles.closeAll);
  const path = await makeTable(root, "t");
  (await handles.acquire(path)).release();
  slow = true;
  await writeFile(join(path, "_versions", "2.manifest"), "");
  const acquiring = handles.acquire(path);
  await begun.promise;
  handles.forget(path);
  assert.deepEqual([...tables.open], [path], "the engine is at work on it");
  gate.resolve();
  (await acquiring).release();
  assert.equal(tables.open.size, 0);
});

test("a table whose directory is gone is TableNotFound, and its handle is closed", async (t) => {
  const root = await temporaryDirectory(t);
  const tables = fakeTables();
  const handles = createHandles({ max: 10, idleMs: 60_000, watch, deletionsOf }, tables.openTable);
  t.onTestFinished(handles.closeAll);
  const path = await makeTable(root, "t");
  (await handles.acquire(path)).release();
  await rm(path, { recursive: true });
  await assert.rejects(handles.acquire(path), failsWith("TableNotFound"));
  assert.equal(tables.open.size, 0);
});

test("the engine answers once for a version, and again when the table has moved or it has failed", async (t) => {
  const root = await temporaryDirectory(t);
  const path = await makeTable(root, "t");
  let asked = 0;
  let fails = false;
  const stream = tableToIPC(tableFromArrays({ id: Int32Array.of(1) }), "stream");
  const schema = Buffer.concat(await Readable.from(toIpcFile(Readable.from([stream]))).toArray());
  const table: Partial<NativeTable> = {
    checkoutLatest: async () => {},
    version: async () => 1,
    close() {},
    async schema() {
      asked++;
      if (fails) throw new Error("the storage is away");
      return schema;
    },
    async countRows() {
      asked++;
      if (fails) throw new Error("the storage is away");
      return 7;
    },
    async listIndices() {
      asked++;
      if (fails) throw new Error("the storage is away");
      return [
        { name: "words", indexType: "FTS", columns: ["text"] },
        { name: "ids", indexType: "BTree", columns: ["id"] },
      ];
    },
  };
  const handles = createHandles(
    { max: 10, idleMs: 60_000, watch, deletionsOf },
    async () => table as NativeTable,
  );
  t.onTestFinished(handles.closeAll);
  async function answers() {
    const lease = await handles.acquire(path);
    try {
      const all = await Promise.allSettled([lease.schema(), lease.rowCount(), lease.textFields()]);
      const [schema, rows, fields] = all;
      const failures = all.filter(({ status }) => status === "rejected");
      assert.ok(failures.length === 0 || failures.length === all.length);
      if (schema.status === "rejected") throw schema.reason;
      assert.ok(rows.status === "fulfilled" && fields.status === "fulfilled");
      return [schema.value.fields.length, rows.value, ...fields.value.keys()];
    } finally {
      lease.release();
    }
  }
  // A directory that is seen for the first time may change again within the same tick.
  const askedAgain = async () => {
    asked = 0;
    await answers();
    return asked;
  };
  await expect.poll(askedAgain).toBe(0);
  const expected = [1, 7, "text"];
  assert.deepEqual([await answers(), await answers(), asked], [expected, expected, 0]);
  await writeFile(join(path, "_versions", "2.manifest"), "");
  assert.deepEqual([await answers(), asked], [expected, 3]);
  fails = true;
  await writeFile(join(path, "_versions", "3.manifest"), "");
  await assert.rejects(answers());
  fails = false;
  assert.deepEqual([await answers(), asked], [expected, 9]);
});
