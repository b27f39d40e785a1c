import assert from "node:assert/strict";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { type TestContext, test } from "vitest";
import { silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { createDiskBucket } from "../../../../test/support/disk-bucket.ts";
import { createRoundBucket } from "../../../../test/support/round-bucket.ts";
import { toIpcFile } from "../../../arrow/ipc/file.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import type { ObjectStore } from "../format/storage.ts";
import { createRemoteStore } from "../stores/remote-store.ts";
import { createEngine, type Engine } from "./engine.ts";

const disk = createLocalStore();
const STORES: Readonly<Record<string, ObjectStore>> = {
  "a disk": disk,
  "a bucket": { ...createRemoteStore(createDiskBucket(disk)), uriOf: disk.uriOf, keyOf: disk.keyOf },
};

async function rows(count: number): Promise<Buffer> {
  const stream = tableToIPC(tableFromArrays({ id: new Int32Array(count) }), "stream");
  return Buffer.concat(await Readable.from(toIpcFile(Readable.from([stream]))).toArray());
}

function open(t: TestContext, store: ObjectStore): Engine {
  const engine = createEngine({ log: silent, store });
  t.onTestFinished(() => engine.close());
  return engine;
}

async function add(engine: Engine, location: string, count: number): Promise<void> {
  const lease = await engine.acquire(location);
  await lease.table.add(await rows(count), "append");
  lease.release();
}

async function count(engine: Engine, location: string): Promise<number> {
  const lease = await engine.acquire(location);
  try {
    const rows = await lease.rowCount();
    assert.equal(rows, await lease.table.countRows());
    return rows;
  } finally {
    lease.release();
  }
}

/** Deletes the newest version, as a client with managed versions does through another process. */
async function deleteNewest(location: string): Promise<void> {
  const directory = join(location, "_versions");
  const [newest] = (await readdir(directory)).filter((name) => name.endsWith(".manifest")).sort();
  assert.ok(newest);
  await rm(join(directory, newest));
}

for (const [where, store] of Object.entries(STORES)) {
  test(`open tables on ${where} leave a newest version that another process deletes`, async (t) => {
    const location = join(await temporaryDirectory(t), "t.lance");
    const [writer, reader] = [open(t, store), open(t, store)];
    await writer.create(location, await rows(1), "create");
    await add(writer, location, 2);
    assert.deepEqual([await count(writer, location), await count(reader, location)], [3, 3]);
    await add(writer, location, 3);
    for (const left of [3, 1]) {
      await deleteNewest(location);
      assert.deepEqual([await count(writer, location), await count(reader, location)], [left, left]);
    }
  });

  test(`open tables on ${where} move to another version of the number that they are at`, async (t) => {
    const location = join(await temporaryDirectory(t), "t.lance");
    const [writer, reader, other] = [open(t, store), open(t, store), open(t, store)];
    await writer.create(location, await rows(1), "create");
    await add(writer, location, 2);
    assert.equal(await count(reader, location), 3);
    await deleteNewest(location);
    await add(other, location, 5);
    assert.deepEqual([await count(writer, location), await count(reader, location)], [6, 6]);
  });
}

test("an open table in a bucket is opened again in another history, however far that has come", async (t) => {
  const root = await temporaryDirectory(t);
  const location = join(root, "t.lance");
  const { storage } = createRoundBucket(root);
  const ordered = { ...storage.store, uriOf: disk.uriOf, keyOf: disk.keyOf };
  const [writer, reader] = [open(t, disk), open(t, ordered)];
  const opened = new Set<unknown>();
  for (const versions of [1, 2, 40]) {
    await rm(location, { recursive: true, force: true });
    await writer.create(location, await rows(1), "create");
    for (let version = 2; version <= versions; version += 1) await add(writer, location, 1);
    const lease = await reader.acquire(location);
    lease.release();
    const first = await reader.atVersion(lease.table, 1);
    assert.deepEqual([await lease.rowCount(), await first.countRows()], [versions, 1]);
    opened.add(lease.table);
    first.close();
  }
  assert.equal(opened.size, 3);
});

test("a table on a disk does not ask the engine after a version of its own, and sees those of others", async (t) => {
  const location = join(await temporaryDirectory(t), "t.lance");
  const [writer, other] = [open(t, disk), open(t, disk)];
  await writer.create(location, await rows(1), "create");
  const lease = await writer.acquire(location);
  const before = await lease.schema();
  let asked = 0;
  const checkout = lease.table.checkoutLatest.bind(lease.table);
  Object.assign(lease.table, { checkoutLatest: () => ++asked && checkout() });
  lease.noteMade((await lease.table.add(await rows(2), "append")).version, performance.now(), true);
  assert.equal(await count(writer, location), 3);
  assert.deepEqual(await lease.schema(), before);
  assert.notEqual(await lease.schema(), before);
  assert.equal(asked, 0);
  await add(other, location, 4);
  assert.equal(await count(writer, location), 7);
  assert.equal(asked, 1);
  lease.noteMade((await lease.table.add(await rows(1), "append")).version, performance.now());
  await deleteNewest(location);
  await add(other, location, 8);
  assert.equal(await count(writer, location), 15);
  lease.release();
});
