import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { type TestContext, test, vi } from "vitest";
import { failsWith, silent, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { createRoundBucket } from "../../../../../test/support/round-bucket.ts";
import { createEngine } from "../../engine/engine.ts";
import { listTree } from "../../format/storage.ts";
import { writeByDisk } from "./write-by-disk.ts";

const FILE = Buffer.from(tableToIPC(tableFromArrays({ id: Int32Array.of(1, 2, 3) }), "file"));

/** Opens a bucket with a place for a table, and a directory for temporary files. */
async function openBucket(t: TestContext) {
  const [root, temporary] = [await temporaryDirectory(t), await temporaryDirectory(t)];
  const { store } = createRoundBucket(root).storage;
  const engine = createEngine({ log: silent, store });
  t.onTestFinished(() => engine.close());
  vi.stubEnv("TMPDIR", temporary);
  t.onTestFinished(() => void vi.unstubAllEnvs());
  const path = join(root, "t");
  const filesOf = async () => (await listTree(store, store.keyOf(path))).toSorted();
  return { context: { engine, store }, path, filesOf, temporary };
}

async function rowsOf({ engine }: Awaited<ReturnType<typeof openBucket>>["context"], path: string) {
  const lease = await engine.acquire(path);
  try {
    return await lease.table.countRows();
  } finally {
    lease.release();
  }
}

test("a small new table gets to a bucket by the disk, where nothing remains", async (t) => {
  const { context, path, filesOf, temporary } = await openBucket(t);
  assert.equal(await writeByDisk(context, path, FILE), 1);
  assert.equal(await rowsOf(context, path), 3);
  const kinds = (await filesOf()).map((name) => name.replace(/\/.*\./, "/*."));
  assert.deepEqual(kinds, ["_transactions/*.txn", "_versions/*.manifest", "data/*.lance"]);
  // The engine has a directory there, too.
  const left = (await readdir(temporary)).filter((name) => name.startsWith("lance-gateway-"));
  assert.deepEqual(left, []);
});

test("a new table leaves a dataset alone that is at its place", async (t) => {
  const { context, path, filesOf } = await openBucket(t);
  await context.engine.create(path, FILE, "create");
  const before = await filesOf();
  await assert.rejects(writeByDisk(context, path, FILE), failsWith("ConcurrentModification"));
  assert.deepEqual(await filesOf(), before);
});

test("a new table is written to the bucket at once without a disk for temporary files", async (t) => {
  const { context, path, temporary } = await openBucket(t);
  await context.engine.warmUp();
  vi.stubEnv("TMPDIR", join(temporary, "missing"));
  assert.equal(await writeByDisk(context, path, FILE), 1);
  assert.equal(await rowsOf(context, path), 3);
});
