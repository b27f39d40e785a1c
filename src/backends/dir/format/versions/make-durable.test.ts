import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { commitChange } from "../changes/commit.ts";
import type { DatasetRef } from "../dataset.ts";
import { UnsyncedError } from "../local/local-errors.ts";
import { createLocalStore } from "../local/local-store.ts";
import { createSharedBatch, syncVersion } from "./make-durable.ts";
import { readVersion } from "./version-files.ts";
import { filesOf } from "./version-parts.ts";

/**
 * Makes a table of three versions, each with a file of rows, and opens it as a process that knows nothing of it and
 * records what it syncs.
 */
async function openTable(t: TestContext) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([1]));
  await client.upload("insertIntoTable", "t", {}, rows([2]));
  await client.upload("insertIntoTable", "t", {}, rows([3]));
  const local = createLocalStore(root);
  const synced = new Set<string>();
  const files = {
    ...local.files,
    async syncObjects(keys: readonly string[], within: string) {
      for (const key of keys) synced.add(key);
      await local.files?.syncObjects(keys, within);
    },
  };
  const dataset = { store: { ...local, files }, root: "data/t.lance" } as DatasetRef;
  const filesAt = async (version: bigint) => filesOf(dataset, (await readVersion(dataset, version)).manifest);
  return { client, dataset, synced, filesAt };
}

test("the first version that a process syncs takes all files that it needs along", async (t) => {
  const { dataset, synced, filesAt } = await openTable(t);
  await syncVersion(dataset, 3n);
  for (const file of await filesAt(3n)) assert.ok(synced.has(file), file);
});

test("a later version takes along what the versions since the last durable one did not sync", async (t) => {
  const { dataset, synced, filesAt } = await openTable(t);
  await syncVersion(dataset, 1n);
  synced.clear();
  await syncVersion(dataset, 3n);
  const [first, second, third] = [await filesAt(1n), await filesAt(2n), await filesAt(3n)];
  const since = third.filter((file) => !first.includes(file));
  assert.ok(since.some((file) => second.includes(file)));
  for (const file of since) assert.ok(synced.has(file), file);
  synced.clear();
  await syncVersion(dataset, 3n);
  assert.ok(!second.filter((file) => third.includes(file)).some((file) => synced.has(file)));
});

test("a version takes along what an earlier one did not sync, also when a later one is durable", async (t) => {
  const { client, dataset, synced, filesAt } = await openTable(t);
  await client.upload("insertIntoTable", "t", {}, rows([4, 5]));
  await client.call("deleteFromTable", "t", { predicate: "id = 4" });
  await client.upload("insertIntoTable", "t", {}, rows([6]));
  await client.call("deleteFromTable", "t", { predicate: "id = 5" });
  await syncVersion(dataset, 1n);
  await syncVersion(dataset, 7n);
  synced.clear();
  const [fifth, sixth, seventh] = [await filesAt(5n), await filesAt(6n), await filesAt(7n)];
  const shared = fifth.filter((file) => sixth.includes(file) && !seventh.includes(file));
  assert.ok(shared.some((file) => file.includes("/_deletions/")));
  await syncVersion(dataset, 6n);
  for (const file of shared) assert.ok(synced.has(file), file);
});

test("a version after the durable one is read alone", async (t) => {
  const { dataset, synced, filesAt } = await openTable(t);
  await syncVersion(dataset, 2n);
  const [second, third] = [await filesAt(2n), await filesAt(3n)];
  synced.clear();
  Object.assign(dataset.store, { getTail: () => assert.fail("another version was read") });
  await syncVersion(dataset, 3n);
  for (const file of third) assert.equal(synced.has(file), !second.includes(file), file);
});

test("a version with the number of a deleted one takes all files along that it needs", async (t) => {
  const { client, dataset, synced, filesAt } = await openTable(t);
  await syncVersion(dataset, 3n);
  await client.call("batchDeleteTableVersions", "t", { ranges: [{ startVersion: 2n, endVersion: -1n }] });
  await client.upload("insertIntoTable", "t", {}, rows([4]));
  await client.upload("insertIntoTable", "t", {}, rows([5]));
  synced.clear();
  await syncVersion(dataset, 2n);
  await syncVersion(dataset, 3n);
  const first = await filesAt(1n);
  for (const file of await filesAt(3n)) assert.ok(first.includes(file) || synced.has(file), file);
});

test("a version is not durable that needs a file whose sync has failed", async (t) => {
  const { dataset } = await openTable(t);
  const { files } = dataset.store;
  let fails = true;
  const broken = {
    ...files,
    async syncObjects(keys: readonly string[], within: string) {
      if (fails) throw new UnsyncedError(new Error("EIO"));
      await files?.syncObjects(keys, within);
    },
  };
  const brokenDataset = { ...dataset, store: { ...dataset.store, files: broken } } as DatasetRef;
  fails = false;
  await syncVersion(brokenDataset, 1n);
  fails = true;
  await assert.rejects(syncVersion(brokenDataset, 2n), failsWith("OutcomeUnknown"));
  fails = false;
  await assert.rejects(syncVersion(brokenDataset, 3n), failsWith("OutcomeUnknown"));
  await syncVersion(brokenDataset, 1n);
});

test("versions that wait for a sync are synced together, each with its own manifest", async (t) => {
  const { dataset, synced, filesAt } = await openTable(t);
  const { files } = dataset.store;
  const held = Promise.withResolvers<void>();
  let syncs = 0;
  const slow = {
    ...files,
    async syncObjects(keys: readonly string[], within: string) {
      syncs++;
      await held.promise;
      await files?.syncObjects(keys, within);
    },
  };
  const slowDataset = { ...dataset, store: { ...dataset.store, files: slow } } as DatasetRef;
  const first = syncVersion(slowDataset, 1n);
  const others = [syncVersion(slowDataset, 3n), syncVersion(slowDataset, 2n), syncVersion(slowDataset)];
  // The last one looks for its version first.
  await sleep(100);
  held.resolve();
  await Promise.all([first, ...others]);
  assert.equal(syncs, 2);
  for (const version of [1n, 2n, 3n]) {
    assert.ok(synced.has((await readVersion(dataset, version)).key), `the manifest of version ${version}`);
    for (const file of await filesAt(version)) assert.ok(synced.has(file), file);
  }
});

test("a version that is gone fails alone, and those that are synced together with it do not", async (t) => {
  const { dataset } = await openTable(t);
  const first = syncVersion(dataset, 1n);
  const [gone, beside] = [syncVersion(dataset, 9n), syncVersion(dataset, 3n)];
  await first;
  await assert.rejects(gone, failsWith("TableVersionNotFound"));
  await beside;
});

test("a change of metadata makes the version durable on which it builds", async (t) => {
  const { client, dataset, synced, filesAt } = await openTable(t);
  await commitChange(dataset, () => ({ operation: { case: undefined } }));
  for (const file of await filesAt(3n)) assert.ok(synced.has(file), file);
  synced.clear();
  await commitChange(dataset, () => ({ operation: { case: undefined } }));
  assert.deepEqual([...synced], []);
  assert.deepEqual(idsOf(await client.query("t")), [1, 2, 3]);
});

test("items whose callers arrive while a batch runs are the next batch together", async () => {
  const batches: string[][] = [];
  const gate = Promise.withResolvers<void>();
  const share = createSharedBatch(async (items: ReadonlySet<string>) => {
    batches.push([...items]);
    await gate.promise;
    return items.size;
  });
  const results = Promise.all([share("a"), share("b"), share("c"), share("b")]);
  gate.resolve();
  assert.deepEqual(await results, [1, 2, 2, 2]);
  assert.deepEqual(batches, [["a"], ["b", "c"]]);
  assert.equal(await share("d"), 1);
});

test("a failure reaches all callers of its batch, and no other", async () => {
  const share = createSharedBatch(async (items: ReadonlySet<string>) => {
    if (items.has("bad")) throw new Error("no");
  });
  const first = share("good");
  const [bad, beside] = [share("bad"), share("beside")];
  await first;
  await assert.rejects(bad, /no/);
  await assert.rejects(beside, /no/);
  await share("later");
});
