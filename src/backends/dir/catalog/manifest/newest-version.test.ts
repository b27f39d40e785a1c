import assert from "node:assert/strict";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { expect, test, vi } from "vitest";
import { temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { createRoundBucket } from "../../../../../test/support/round-bucket.ts";
import { manifestName, type NamingScheme } from "../../format/dataset.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import type { DirectoryStamp, ObjectStore } from "../../format/storage.ts";
import { createFreshness } from "./newest-version.ts";

const COMMITS = 200;
const COMMITTER = new URL("../../../../../test/fixtures/catalog/committer.ts", import.meta.url);

/** Shows a disk through a file system whose times are whole multiples of a number of nanoseconds. */
function withCoarseTimes(store: ReturnType<typeof createLocalStore>, tickNs: bigint): ObjectStore {
  const coarse = (ns: bigint) => ns - (ns % tickNs);
  return {
    ...store,
    files: {
      ...store.files,
      directoryStamp(directory): DirectoryStamp | undefined {
        const stamp = store.files.directoryStamp(directory);
        return (
          stamp && { ...stamp, modifiedNs: coarse(stamp.modifiedNs), changedNs: coarse(stamp.changedNs) }
        );
      },
    },
  };
}

const STORES: Readonly<Record<string, () => ObjectStore>> = {
  "exact times": () => createLocalStore(),
  "times in ticks of 10 ms": () => withCoarseTimes(createLocalStore(), 10_000_000n),
  "times in whole seconds": () => withCoarseTimes(createLocalStore(), 1_000_000_000n),
  "no times, as on an object store": () => ({ ...createLocalStore(), files: undefined }),
};

async function makeDataset(t: Parameters<typeof temporaryDirectory>[0], store: ObjectStore) {
  const path = join(await temporaryDirectory(t), "dataset");
  await mkdir(join(path, "_versions"), { recursive: true });
  const root = store.keyOf(path);
  const put = (version: number, scheme: NamingScheme = "V2") =>
    writeFile(join(path, "_versions", manifestName(BigInt(version), scheme)), "1");
  return { path, put, dataset: { store, root } };
}

for (const [title, createStore] of Object.entries(STORES)) {
  // The test uses threads instead of processes, so that the reader knows at once which commits are done; the disk
  // behaves equally for both.
  test(`misses no commit while several writers commit: ${title}`, async (t) => {
    const { dataset } = await makeDataset(t, createStore());
    const done = new Int32Array(new SharedArrayBuffer(4));
    const writers = [1, 2].map(
      () => new Worker(COMMITTER, { workerData: { root: dataset.root, done, commits: COMMITS } }),
    );
    const { head, headNow } = createFreshness(dataset);
    let seen = 0;
    try {
      for (let looks = 0; seen < COMMITS; looks++) {
        const before = Atomics.load(done, 0);
        const { version } = headNow() ?? (await head());
        assert.ok(version >= before, `version ${before} was there before the look that saw ${version}`);
        assert.ok(version >= seen, "it does not go back");
        seen = version;
        if (looks % 64 === 0) await sleep(1);
      }
    } finally {
      await Promise.all(writers.map((writer) => writer.terminate()));
    }
  });

  test(`notices versions that are created again, renamed or removed: ${title}`, async (t) => {
    const { path, put, dataset } = await makeDataset(t, createStore());
    const { head } = createFreshness(dataset);
    assert.deepEqual(await head(), { version: 0, generation: 0 });
    await put(1, "V1");
    const first = await head();
    assert.equal(first.version, 1);
    await put(2, "V1");
    assert.deepEqual(await head(), { version: 2, generation: first.generation });

    const names = [1n, 2n].map((version) => [manifestName(version, "V1"), manifestName(version, "V2")]);
    for (const [from, to] of names)
      await rename(join(path, "_versions", from ?? ""), join(path, "_versions", to ?? ""));
    await put(3);
    const renamed = await head();
    assert.equal(renamed.version, 3);

    await rm(join(path, "_versions", manifestName(3n, "V2")));
    const back = await head();
    assert.equal(back.version, 2);
    assert.notEqual(back.generation, renamed.generation);

    await rm(path, { recursive: true });
    const gone = await head();
    assert.equal(gone.version, 0);
    await mkdir(join(path, "_versions"), { recursive: true });
    await put(1);
    await put(2);
    const anew = await head();
    assert.equal(anew.version, 2);
    assert.notEqual(anew.generation, back.generation);
  });
}

test("does not look into a directory that is at rest", async (t) => {
  const store = createLocalStore();
  let looks = 0;
  const files = {
    ...store.files,
    fileStamp(key: string) {
      looks++;
      return store.files.fileStamp(key);
    },
  };
  const { put, dataset } = await makeDataset(t, { ...store, files });
  await put(1);
  const { head, headNow } = createFreshness(dataset);
  assert.equal(headNow(), undefined);
  await expect.poll(async () => (await head()) && headNow()).toBeDefined();
  const known = await head();
  const before = looks;
  for (let i = 0; i < 10; i++) assert.equal((await head()).version, 1);
  assert.deepEqual(headNow(), known);
  assert.equal(looks, before);
  await put(2);
  assert.equal(headNow(), undefined);
  assert.equal((await head()).version, 2);
});

test("misses no commit when the process's clock is days ahead of the storage's, or days behind", async (t) => {
  const store = withCoarseTimes(createLocalStore(), 1_000_000_000n);
  const real = Date.now;
  t.onTestFinished(() => void vi.restoreAllMocks());
  for (const days of [3, -3]) {
    vi.spyOn(Date, "now").mockImplementation(() => real() + days * 86_400_000);
    const { put, dataset } = await makeDataset(t, store);
    const { head, headNow } = createFreshness(dataset);
    for (let version = 1; version <= 30; version++) {
      await put(version);
      assert.equal((headNow() ?? (await head())).version, version);
    }
  }
});

test("a check by a listing finds a commit, another history, and one that it does not reach back to", async (t) => {
  const root = await temporaryDirectory(t);
  const { storage, take } = createRoundBucket(root);
  const { path, put, dataset } = await makeDataset(t, storage.store);
  const { head, confirm, noteMade } = createFreshness(dataset);
  const versions = join(path, "_versions");
  const removeAll = async () => {
    await rm(versions, { recursive: true });
    await mkdir(versions);
  };
  const byListing = { byListing: true };
  for (const version of [1, 2]) await put(version);
  const second = await head();
  take();
  assert.equal(await confirm?.(second, byListing), true);
  assert.equal(take().requests.length, 1);
  await put(3);
  assert.equal(await confirm?.(second, byListing), false);
  assert.equal(await confirm?.(second, { ...byListing, mayBeFollowed: true }), true);
  // A version that this process has made is known before a check has seen it.
  noteMade(3);
  assert.equal(await confirm?.({ ...second, version: 3 }, byListing), true);
  assert.equal(await confirm?.({ ...second, version: 3 }, byListing), true);
  for (let version = 4; version <= 40; version += 1) await put(version);
  assert.equal(await confirm?.({ ...second, version: 3 }, byListing), false);
  const last = await head();
  assert.equal(last.version, 40);
  assert.equal(await confirm?.(last, byListing), true);
  await removeAll();
  for (const version of [1, 40]) {
    await put(version);
    assert.equal(await confirm?.(last, byListing), false, `another history up to version ${version}`);
  }
  const other = await head();
  assert.notEqual(other.generation, last.generation);
  await removeAll();
  assert.equal(await confirm?.(other, byListing), false);
});
