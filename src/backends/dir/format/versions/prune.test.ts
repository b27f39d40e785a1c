import assert from "node:assert/strict";
import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { test } from "vitest";
import { createMemoryStore, type MemoryStore } from "../../../../../test/fixtures/dir/format.ts";
import { IndexSectionSchema, type Manifest, ManifestSchema } from "../../../../gen/lance/format/table_pb.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import { type DatasetRef, manifestKey } from "../dataset.ts";
import { buildManifestFile } from "../files/manifest-file.ts";
import { type PruneOptions, pruneVersions } from "./prune.ts";
import { findVersions, readVersion } from "./version-files.ts";
import { filesOf } from "./version-parts.ts";

const SIGNATURE = Buffer.from([0, 0, 2, 0, 0x4c, 0x41, 0x4e, 0x43]);

const options = (more: Partial<PruneOptions> = {}): PruneOptions => ({
  keep: 2,
  minAgeMs: 1_000,
  clock: { now: async () => 10_000 },
  mayGo: ({ tag }) => tag !== "stays",
  known: new Map(),
  signal: new AbortController().signal,
  ...more,
});

/** Puts a version with its data files; a version that must be kept gets a label. */
function put(
  { store, root }: DatasetRef & { store: MemoryStore },
  version: number,
  files: Iterable<number>,
  more: Partial<Manifest> = {},
  indices?: Uint8Array,
): void {
  const names = [...files].map((file) => `f${file}.lance`);
  const fragments = names.map((path, i) => ({
    id: BigInt(i),
    physicalRows: 1n,
    files: [{ path, fileSizeBytes: 1n }],
  }));
  const manifest = { ...create(ManifestSchema, { version: BigInt(version), fragments }), ...more };
  if (indices !== undefined) manifest.indexSection = 0n;
  const inherited = indices === undefined ? new Uint8Array() : withLength(indices);
  const bytes = buildManifestFile(inherited, new Uint8Array(), manifest, SIGNATURE);
  store.objects.set(manifestKey({ store, root }, BigInt(version), "V2"), bytes);
  for (const name of names) store.objects.set(`${root}/data/${name}`, Buffer.of(1));
}

function withLength(section: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(section.byteLength);
  return Buffer.concat([length, section]);
}

function makeDataset() {
  return { store: createMemoryStore(), root: "t" };
}

async function assertWhole(dataset: DatasetRef & { store: MemoryStore }): Promise<number> {
  const versions = await findVersions(dataset);
  for (const { version } of versions) {
    const { manifest } = await readVersion(dataset, version);
    for (const file of filesOf(dataset, manifest))
      assert.ok(dataset.store.objects.has(file), `version ${version} has lost ${file}`);
  }
  return versions.length;
}

const history = fc.array(
  fc.record({
    files: fc.uniqueArray(fc.nat(9), { maxLength: 5 }),
    stays: fc.boolean(),
    /** Whether it is young at the first run. */
    isYoung: fc.boolean(),
  }),
  { minLength: 1, maxLength: 12 },
);

test("keeps the files of every remaining version wherever the work stops, and deletes all others in the end", async () => {
  await fc.assert(
    fc.asyncProperty(history, fc.nat(30), async (versions, stopsAfter) => {
      const dataset = makeDataset();
      for (const [i, { files, stays }] of versions.entries())
        put(dataset, i + 1, files, { tag: stays ? "stays" : "" });
      let deletions = 0;
      const store: MemoryStore = {
        ...dataset.store,
        delete(key) {
          if (deletions++ >= stopsAfter) throw new LanceError("ServiceUnavailable", "stopped");
          return dataset.store.delete(key);
        },
        async head(key) {
          const info = await dataset.store.head(key);
          const at = versions.findIndex((_, i) => key === manifestKey(dataset, BigInt(i + 1), "V2"));
          return info && { ...info, modifiedMillis: versions[at]?.isYoung ? 9_500 : 0 };
        },
      };
      const known = new Map();
      const first = await pruneVersions({ ...dataset, store }, options({ known })).catch((error: unknown) => {
        assert.ok(isLanceError(error, "ServiceUnavailable"));
      });
      await assertWhole(dataset);
      // The versions after a young one are kept until that is old.
      const oldestYoung = versions.slice(0, -2).findIndex(({ isYoung, stays }) => isYoung && !stays);
      if (first !== undefined && oldestYoung >= 0) {
        assert.ok(first.hasYoung);
        for (let i = oldestYoung; i < versions.length; i++) await readVersion(dataset, BigInt(i + 1));
      }
      await pruneVersions(dataset, options({ known, clock: { now: async () => 20_000 } }));
      const left = await assertWhole(dataset);
      assert.equal(left, versions.filter(({ stays }, i) => stays || i >= versions.length - 2).length);
      if (first === undefined) return;
      const needed = new Set<string>();
      for (const { version } of await findVersions(dataset))
        for (const file of filesOf(dataset, (await readVersion(dataset, version)).manifest)) needed.add(file);
      const data = [...dataset.store.objects.keys()].filter((key) => key.startsWith("t/data/"));
      assert.deepEqual(
        data.filter((key) => !needed.has(key)),
        [],
        "no file is left that only pruned versions had",
      );
    }),
    { numRuns: 300 },
  );
});

test("keeps the files of a version that was restored while old ones were deleted", async () => {
  const dataset = makeDataset();
  for (let version = 1; version <= 5; version++) put(dataset, version, [version]);
  const store: MemoryStore = {
    ...dataset.store,
    async delete(key) {
      // Another writer restored the first version right before its deletion, and overwrote the table again.
      if (key === manifestKey(dataset, 1n, "V2")) {
        put(dataset, 6, [1]);
        put(dataset, 7, [7]);
      }
      return dataset.store.delete(key);
    },
  };
  await pruneVersions({ ...dataset, store }, options());
  assert.equal(await assertWhole(dataset), 4);
});

for (const [kind, ref] of [
  ["branches", { parentBranch: null, parentVersion: 2 }],
  ["tags", { branch: null, version: 2, manifestSize: 1 }],
] as const) {
  test(`keeps a version that ${kind} came to name right before it was deleted`, async () => {
    const dataset = makeDataset();
    for (let version = 1; version <= 5; version++) put(dataset, version, [version]);
    const store: MemoryStore = {
      ...dataset.store,
      async deleteAll(keys) {
        dataset.store.objects.set(`t/_refs/${kind}/b.json`, Buffer.from(JSON.stringify(ref)));
        return dataset.store.deleteAll(keys);
      },
    };
    const { versions, files } = await pruneVersions({ ...dataset, store }, options());
    assert.deepEqual({ versions, files }, { versions: 2, files: 2 });
    assert.equal(await assertWhole(dataset), 3);
    assert.equal((await readVersion(dataset, 2n)).manifest.version, 2n);
  });
}

test("leaves a table unchanged if a version needs newer software or a tag appears meanwhile", async () => {
  for (const more of [
    { readerFeatureFlags: 1n << 12n },
    { $unknown: [{ no: 30, wireType: 0, data: Uint8Array.of(1) }] },
  ]) {
    const dataset = makeDataset();
    for (let version = 1; version <= 5; version++)
      put(dataset, version, [version], version === 3 ? more : {});
    await assert.rejects(pruneVersions(dataset, options()), (error) => isLanceError(error, "Unsupported"));
    assert.equal((await findVersions(dataset)).length, 5);
  }
  const dataset = makeDataset();
  for (let version = 1; version <= 5; version++) put(dataset, version, [version]);
  const mayGo = () => {
    dataset.store.objects.set("t/_refs/tags/mine.json", Buffer.from("{}"));
    return true;
  };
  assert.deepEqual(await pruneVersions(dataset, options({ mayGo })), {
    versions: 0,
    files: 0,
    bytes: 0,
    hasYoung: false,
    hasReplaced: false,
  });
  assert.equal(await assertWhole(dataset), 5);
});

test("keeps the versions that tags and branches of the main branch name, and their files", async () => {
  const dataset = makeDataset();
  for (let version = 1; version <= 9; version++) put(dataset, version, [version]);
  const ref = (name: string, content: object) =>
    dataset.store.objects.set(`t/_refs/${name}.json`, Buffer.from(JSON.stringify(content)));
  ref("tags/mine", { branch: null, version: 2 });
  ref("tags/theirs", { branch: "b", version: 3 });
  ref("branches/b", { parentBranch: null, parentVersion: 4 });
  ref("branches/c", { parentBranch: "b", parentVersion: 5 });
  const { versions, files } = await pruneVersions(dataset, options());
  assert.deepEqual({ versions, files }, { versions: 5, files: 5 });
  assert.equal(await assertWhole(dataset), 4);
  assert.deepEqual((await findVersions(dataset)).map(({ version }) => Number(version)).sort(), [2, 4, 8, 9]);
});

test("says what it would delete, with its size, and deletes nothing in a dry run", async () => {
  const dataset = makeDataset();
  for (let version = 1; version <= 5; version++) put(dataset, version, [version, version + 1]);
  const before = new Map(dataset.store.objects);
  const planned = await pruneVersions(dataset, options({ dryRun: true }));
  assert.deepEqual(dataset.store.objects, before);
  const pruned = await pruneVersions(dataset, options());
  assert.deepEqual(planned, pruned);
  const hint = "t/_versions/latest_version_hint.json";
  const sizeOf = (objects: ReadonlyMap<string, Uint8Array>) =>
    [...objects].reduce((sum, [key, bytes]) => sum + (key === hint ? 0 : bytes.byteLength), 0);
  assert.equal(pruned.files, 3);
  assert.equal(pruned.bytes, sizeOf(before) - sizeOf(dataset.store.objects));
});

test("deletes nothing while the first version of a branch is missing", async () => {
  const dataset = makeDataset();
  for (let version = 3; version <= 9; version++) put(dataset, version, [version]);
  const branch = { parentBranch: null, parentVersion: 2 };
  dataset.store.objects.set("t/_refs/branches/b.json", Buffer.from(JSON.stringify(branch)));
  assert.deepEqual(await pruneVersions(dataset, options()), {
    versions: 0,
    files: 0,
    bytes: 0,
    hasYoung: false,
    hasReplaced: false,
  });
});

test("deletes the indices that only deleted versions had", async () => {
  const dataset = makeDataset();
  const ids = [1, 2, 3].map((n) => Buffer.alloc(16, n));
  const [old, both, fresh] = ids.map((id) => ({ uuid: { uuid: id } }));
  const lists = [[old], [old, both], [both], [both, fresh]];
  for (const [i, indices] of lists.entries()) {
    const section = toBinary(IndexSectionSchema, create(IndexSectionSchema, { indices: indices as never }));
    put(dataset, i + 1, [0], {}, section);
  }
  const keyOf = (n: number) => `t/_indices/${ids[n]?.toString("hex").replace(UUID, "$1-$2-$3-$4-$5")}/index`;
  for (const n of [0, 1, 2]) dataset.store.objects.set(keyOf(n), Buffer.of(1));
  await pruneVersions(dataset, options());
  const left = [0, 1, 2].filter((n) => dataset.store.objects.has(keyOf(n)));
  assert.deepEqual(left, [1, 2]);
});

const UUID = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/;

/** Makes versions that were written at the given times, in milliseconds. */
function makeDated(times: readonly number[]) {
  const dataset = makeDataset();
  for (const at of times.keys()) put(dataset, at + 1, [at]);
  const store: MemoryStore = {
    ...dataset.store,
    async head(key) {
      const info = await dataset.store.head(key);
      const at = times.findIndex((_, i) => key === manifestKey(dataset, BigInt(i + 1), "V2"));
      return info && { ...info, modifiedMillis: times[at] as number };
    },
  };
  const left = async () =>
    (await findVersions(dataset)).map(({ version }) => Number(version)).sort((a, b) => a - b);
  return { dataset, dated: { ...dataset, store }, left };
}

test("keeps the newest version of each period among the old ones, however often it runs", async () => {
  const { dataset, dated, left } = makeDated([10, 50, 90, 120, 340, 350, 410, 420, 430, 440]);
  const clock = { now: async () => 450 };
  for (let run = 1; run <= 3; run++) {
    await pruneVersions(dated, options({ keepEachMs: 100, minAgeMs: 15, clock }));
    // The two newest stay, too.
    assert.deepEqual(await left(), [3, 4, 6, 9, 10]);
    await assertWhole(dataset);
  }
});

test("keeps an old version that readers may have found as the newest", async () => {
  const { dated, left } = makeDated([0, 100, 2_900, 2_950, 2_990]);
  const clock = { now: async () => 3_000 };
  const pruned = await pruneVersions(dated, options({ minReplacedMs: 500, minAgeMs: 15, clock }));
  assert.deepEqual([pruned.versions, pruned.hasYoung, await left()], [1, true, [2, 3, 4, 5]]);
});

test("keeps a version that is read, and one that came to be read right before it was deleted", async () => {
  const dataset = makeDataset();
  for (let version = 1; version <= 6; version++) put(dataset, version, [version]);
  const read = new Set([1n]);
  const store: MemoryStore = {
    ...dataset.store,
    async deleteAll(keys) {
      read.add(3n);
      return dataset.store.deleteAll(keys);
    },
  };
  const isRead = (version: bigint) => read.has(version);
  const { versions, files } = await pruneVersions({ ...dataset, store }, options({ isRead }));
  assert.deepEqual({ versions, files }, { versions: 2, files: 2 });
  assert.equal(await assertWhole(dataset), 4);
  for (const version of read) await readVersion(dataset, version);
});

test("a run that pauses leaves the versions that have got the numbers of old ones meanwhile", async () => {
  const dataset = makeDataset();
  const { store } = dataset;
  for (let version = 1; version <= 5; version++) put(dataset, version, [version]);
  // The tags distinguish the files, as those of a bucket do.
  store.head = async (key) => {
    const [found, size] = [await store.getTagged(key), store.objects.get(key)?.byteLength ?? 0];
    return found && { key, size, modifiedMillis: 0, eTag: found.tag };
  };
  const others = () => {
    for (const key of [...store.objects.keys()]) if (key.includes("/_versions/")) store.objects.delete(key);
    for (let version = 1; version <= 5; version++) put(dataset, version, [version + 5]);
  };
  let isNext = false;
  store.put = async (key, bytes) => {
    store.objects.set(key, bytes);
    // The hint is the last thing that is written before versions are deleted.
    if (!isNext) others();
    isNext = true;
  };
  const { versions } = await pruneVersions(dataset, options());
  assert.equal(isNext, true);
  assert.equal(versions, 0);
  assert.equal(await assertWhole(dataset), 5);
});
