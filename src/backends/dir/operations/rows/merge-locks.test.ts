import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tableFromIPC } from "apache-arrow";
import { expect, type TestContext, test, vi } from "vitest";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { createStorageClock } from "../../format/storage-clock.ts";
import { createMergeLocks, type MergeLockTimes } from "./merge-locks.ts";

const ON = { on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true };
const ROUNDS = 6;

test("gateways that merge the same new keys at the same time insert each of them once", async (t) => {
  const root = await temporaryDirectory(t);
  const clients = [await openClient(t, root), await openClient(t, root), await openClient(t, root)];
  await clients[0]?.upload("createTable", "t", {}, rows([0]));
  let inserted = 0n;
  for (let round = 1; round <= ROUNDS; round++) {
    const keys = [3 * round, 3 * round + 1, 3 * round + 2];
    const merged = await Promise.all(
      clients.map((client) => client.upload("mergeInsertIntoTable", "t", ON, rows(keys))),
    );
    for (const { numInsertedRows = 0n } of merged) inserted += numInsertedRows;
  }
  const ids = [...(tableFromIPC((await clients[1]?.query("t", { k: 999n })) as Buffer).getChild("id") ?? [])];
  assert.deepEqual(ids.length, new Set(ids).size);
  assert.deepEqual([ids.length, inserted], [1 + 3 * ROUNDS, BigInt(3 * ROUNDS)]);
});

async function openLocks(t: TestContext, times: Partial<MergeLockTimes> = {}) {
  const root = await temporaryDirectory(t);
  const store = createLocalStore();
  const base = store.keyOf(root);
  const all = { leaseMs: 10_000, renewMs: 100, keepMs: 30, turnMs: 300, pollMs: 5, ...times };
  const open = () => {
    const locks = createMergeLocks(base, store, createStorageClock(store, base), all);
    t.onTestFinished(locks.close);
    return locks;
  };
  return { open, key: `${base}/.upkeep/t.lance/merging`, store };
}

const forever = new AbortController().signal;

test("processes take turns, and a busy one lets the others have theirs", async (t) => {
  const { open } = await openLocks(t);
  const [a, b] = [open(), open()];
  let [inside, mostInside, turnsOfB] = [0, 0, 0];
  const end = performance.now() + 2_000;
  async function work(locks: typeof a, count: () => void): Promise<void> {
    while (performance.now() < end) {
      await locks.withLock("t.lance", forever, async () => {
        inside++;
        mostInside = Math.max(mostInside, inside);
        await sleep(2);
        inside--;
        count();
      });
    }
  }
  await Promise.all([work(a, () => {}), work(b, () => turnsOfB++)]);
  assert.equal(mostInside, 1);
  assert.ok(turnsOfB > 0);
});

test("several calls of a process share its lock, and a call that ends does not wait", async (t) => {
  const { open } = await openLocks(t);
  const [a, b] = [open(), open()];
  const { promise, resolve } = Promise.withResolvers<void>();
  const both = [0, 1].map(() => a.withLock("t.lance", forever, () => promise));
  await a.withLock("t.lance", forever, async () => {});
  await assert.rejects(
    b.withLock("t.lance", AbortSignal.timeout(50), async () => {}),
    failsWith("Cancelled"),
  );
  await b.withLock("other.lance", forever, async () => {});
  resolve();
  await Promise.all(both);
  await b.withLock("t.lance", forever, async () => {});
});

test("the lock of a process that died is taken over, and a live one keeps it", async (t) => {
  const { open, key, store } = await openLocks(t, { leaseMs: 2_000 });
  await store.put(key, Buffer.from("a dead process"));
  const startedAt = performance.now();
  const [a, b] = [open(), open()];
  let done = false;
  await a.withLock("t.lance", forever, async () => {
    assert.ok(performance.now() - startedAt > 1_900);
    const other = b.withLock("t.lance", forever, async () => {
      done = true;
    });
    await sleep(2_500);
    assert.equal(done, false);
    void other;
  });
  await expect.poll(() => done).toBe(true);
});

test("closing gives the locks back", async (t) => {
  const { open, key, store } = await openLocks(t, { keepMs: 60_000 });
  const locks = open();
  await locks.withLock("t.lance", forever, async () => {});
  assert.ok(await store.head(key));
  await locks.close();
  assert.equal(await store.head(key), undefined);
});

test("updates, deletes and merges at the same time leave no file of deleted rows that no version needs", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const ids = Array.from({ length: 24 }, (_, id) => id);
  await client.upload("createTable", "t", {}, rows([...ids, ids.length]));
  const change = (id: number) => {
    if (id % 3 === 0) return client.call("deleteFromTable", "t", { predicate: `id = ${id}` });
    if (id % 3 === 1) {
      const updates = [{ column: "name", expression: "'new'" }];
      return client.call("updateTable", "t", { predicate: `id = ${id}`, updates });
    }
    return client.upload("mergeInsertIntoTable", "t", { on: ["id"], whenMatchedUpdateAll: true }, rows([id]));
  };
  // No change waits for its turn until the limit, which a busy machine exceeds.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  t.onTestFinished(() => void vi.useRealTimers());
  await Promise.all(ids.map(change));
  assert.equal((await client.call("countTableRows", "t")).count, 17n);
  const files = await readdir(join(root, "data", "t.lance", "_deletions"));
  assert.equal(files.length, ids.length, "each change deletes rows of a single fragment");
});

test("changes follow each other while an earlier one waits for its sync, and share the next sync", async (t) => {
  const root = await temporaryDirectory(t);
  const local = createLocalStore();
  const held = Promise.withResolvers<void>();
  const syncs: (readonly string[])[] = [];
  let isHeld = false;
  const files = {
    ...local.files,
    async syncObjects(keys: readonly string[], within: string) {
      if (isHeld) syncs.push(keys.filter((key) => key.endsWith(".manifest")));
      if (isHeld) await held.promise;
      await local.files.syncObjects(keys, within);
    },
  };
  const storage = { store: { ...local, files }, root, engineOptions: {} };
  const client = await openClient(t, root, { storage, maintenance: false });
  await client.upload("createTable", "t", {}, rows([1, 2, 3, 4, 5]));
  isHeld = true;
  const updates = [{ column: "name", expression: "'new'" }];
  const merge = { on: ["id"], whenNotMatchedInsertAll: true };
  const changes = [
    client.call("deleteFromTable", "t", { predicate: "id = 1" }),
    client.upload("mergeInsertIntoTable", "t", merge, rows([6])),
    client.upload("mergeInsertIntoTable", "t", merge, rows([7])),
    client.call("updateTable", "t", { predicate: "id = 2", updates }),
    client.call("deleteFromTable", "t", { predicate: "id = 3" }),
  ];
  // All of them are readable before the first has been acknowledged.
  const readable = async () => idsOf(await client.query("t")).sort();
  await expect.poll(readable).toEqual([2, 4, 5, 6, 7]);
  const newest = async () => (await client.call("describeTableVersion", "t")).version?.version;
  await expect.poll(newest).toBe(6n);
  held.resolve();
  await Promise.all(changes);
  assert.equal(syncs.flat().length, changes.length);
  // The last of them may have come too late for the second sync.
  assert.ok(syncs.length <= 3, `${syncs.length} syncs`);
});
