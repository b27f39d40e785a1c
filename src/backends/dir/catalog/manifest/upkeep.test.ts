import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { openBaseDirectory, table } from "../../../../../test/fixtures/catalog/catalog.ts";
import { silent } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import { loadNative } from "../../engine/native/load.ts";
import { pruneVersions } from "../../format/versions/prune.ts";
import { latestVersion, readVersion } from "../../format/versions/version-files.ts";
import type { Row } from "../state/row.ts";
import { createHousekeeping } from "./background.ts";
import {
  chooseJoined,
  createJoining,
  createOptimizing,
  isFragmented,
  mayLeaveGap,
} from "./prune-and-compact.ts";

/** The clock is a minute ahead, so that files whose times are rounded up are not in the future. */
const clock = { now: async () => Date.now() + 60_000 };

const options = () => ({
  keep: 5,
  minAgeMs: 0,
  clock,
  mayGo: mayLeaveGap,
  known: new Map(),
  signal: new AbortController().signal,
});

test("removes old versions with the files that only they need", async (t) => {
  const { dataset, location, open } = await openBaseDirectory(t);
  const catalog = open();
  for (let i = 0; i < 40; i++) await catalog.mutate((draft) => draft.put(table(`t${i}`)));
  assert.deepEqual(await pruneVersions(dataset, { ...options(), minAgeMs: 180_000 }), {
    versions: 0,
    files: 0,
    bytes: 0,
    hasYoung: true,
    hasReplaced: false,
  });
  const { versions } = await pruneVersions(dataset, options());
  // The first version has no mark, so its readers must find the second.
  assert.equal(versions, 41 - 5 - 2);
  const { manifest } = await readVersion(dataset);
  const left = async (name: string) => (await readdir(join(location, name))).length;
  assert.equal(await left("_versions"), 5 + 2 + 1);
  assert.ok((await left("data")) <= manifest.fragments.length + 2 * 5);
  assert.ok((await left("_transactions")) <= 5 + 2);
  assert.equal((await open().read()).size, 40);
  // A reader that has not looked for long finds the newest version behind the gap.
  await catalog.mutate((draft) => draft.put(table("more")));
  assert.equal((await latestVersion(dataset))?.version, 42n);
});

test("keeps the version after one of another implementation, which needs to find it", async (t) => {
  const { dataset, engine, location, open } = await openBaseDirectory(t);
  const catalog = open();
  const commit = (name: string) => catalog.mutate((draft) => draft.put(table(name)));
  for (let i = 0; i < 10; i++) await commit(`a${i}`);
  // A full overwrite without the mark, like a commit of the Rust implementation.
  const { encodeRows } = await import("./row-codec.ts");
  await engine.create(location, encodeRows([table("only")]), "overwrite");
  const foreign = (await latestVersion(dataset))?.version as bigint;
  await unmark(dataset, foreign);
  for (let i = 0; i < 10; i++) await commit(`b${i}`);
  await pruneVersions(dataset, options());
  const there = async (version: bigint) =>
    readVersion(dataset, version).then(
      () => true,
      () => false,
    );
  assert.deepEqual(await Promise.all([foreign - 1n, foreign, foreign + 1n, foreign + 2n].map(there)), [
    false,
    true,
    true,
    false,
  ]);
  assert.equal((await open().read()).size, 11);
});

/** Removes the mark from the newest version, as writes of other implementations do. */
async function unmark(dataset: Awaited<ReturnType<typeof openBaseDirectory>>["dataset"], version: bigint) {
  const { buildManifestFile, readSection } = await import("../../format/files/manifest-file.ts");
  const file = await readVersion(dataset, version);
  const { key, manifest, signature } = file;
  const transaction = await readSection(file, manifest.transactionSection ?? 0n);
  const plain = { ...manifest, config: {}, transactionSection: 0n };
  delete plain.indexSection;
  await dataset.store.put(key, buildManifestFile(new Uint8Array(), transaction, plain, signature));
}

test("joins large fragments while commits continue", async (t) => {
  const { dataset, manifestTable, open } = await openBaseDirectory(t);
  const manifest = manifestTable();
  const catalog = open();
  for (let i = 0; i < 9; i++) {
    await catalog.mutate((draft) => {
      for (let k = 0; k < 4_200; k++) draft.put(table(`t${i}_${k}`));
    });
  }
  const version = (await latestVersion(dataset))?.version as bigint;
  const before = await manifest.manifestOf(Number(version));
  assert.equal(chooseJoined(before)?.length, 9);
  const state = await catalog.read();
  const [first, ...others] = chooseJoined(before) ?? [];
  assert.ok(first !== undefined);
  const prepared = await manifest.prepareJoin(Number(version), state, others);
  const stale = await manifest.prepareJoin(Number(version), state, [first, ...others]);
  const joined = await manifest.join(Number(version), prepared);
  assert.equal(joined?.addresses.size, 8 * 4_200);
  assert.equal(await manifest.join(joined?.version ?? 0, stale), undefined);
  const after = await open().read();
  assert.equal(after.size, 9 * 4_200);
  assert.deepEqual(after.addressesOf("t8_4199"), [joined?.addresses.get("t8_4199")]);
});

test("runs a single chore at a time after commits, and retries after a failure", async () => {
  let manifests = 0;
  const joining = createJoining(
    async () => {
      manifests++;
      return undefined;
    },
    async () => false,
  );
  const housekeeping = createHousekeeping([joining], silent, { delayMs: 1, pauseMs: 1 });
  assert.equal(manifests, 0);
  housekeeping.noteCommit();
  housekeeping.noteCommit();
  while (manifests === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  await housekeeping.close();
  housekeeping.noteCommit();
  assert.equal(manifests, 1);
});

test("keeps foreign indices of the manifest correct through commits, and updates them", async (t) => {
  const { dataset, engine, location, open } = await openBaseDirectory(t);
  const catalog = open();
  const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
  const declare = (ids: readonly string[]) =>
    catalog.mutate((draft) => {
      for (const id of ids) draft.put(table(id));
    });
  await declare(names("a", 40));
  const lease = await engine.acquire(location);
  t.onTestFinished(() => lease.release());
  const { table: native } = lease;
  await native.checkoutLatest();
  const { Index } = loadNative();
  for (const [column, kind] of [
    ["object_id", Index.btree()],
    ["object_type", Index.bitmap()],
    ["base_objects", Index.labelList()],
  ] as const) {
    await (await native.createIndexAsync(kind, column, true, undefined, undefined, true)).wait();
  }
  const expected = new Set(names("a", 40));
  const assertFound = async () => {
    await native.checkoutLatest();
    for (const id of ["a0", "a1", "a39", "b0", "b19", "c3"])
      assert.equal(await native.countRows(`object_id = '${id}'`), expected.has(id) ? 1 : 0, id);
    assert.equal(await native.countRows("object_type = 'table'"), expected.size);
    assert.deepEqual((await native.listIndices()).length, 3);
    const state = await open().read();
    assert.deepEqual([...state.descendants("")].sort(), [...expected].sort());
  };
  // Each commit absorbs rows that an index knows at their old place.
  for (const id of names("b", 20)) {
    await declare([id]);
    expected.add(id);
  }
  await catalog.mutate((draft) => draft.delete("a0"));
  await catalog.mutate((draft) => draft.put(table("a1", { changed: "yes" })));
  expected.delete("a0");
  await assertFound();
  const newest = async () => (await readVersion(dataset)).manifest;
  let optimized = 0;
  const optimizing = createOptimizing(
    newest,
    async () => {
      optimized++;
      await native.checkoutLatest();
      await native.optimize(0);
    },
    silent,
  );
  const { signal } = new AbortController();
  await optimizing.run(signal);
  await optimizing.run(signal);
  assert.equal(optimized, 1, "once is enough until there is more");
  for (const { name } of await native.listIndices())
    assert.equal((await native.indexStats(name))?.numUnindexedRows, 0, name);
  await assertFound();
  await declare(names("c", 5));
  for (const id of names("c", 5)) expected.add(id);
  await assertFound();
});

test("keeps what other programs store in the manifest, or does not change it", async (t) => {
  const { dataset, engine, location, open } = await openBaseDirectory(t);
  const catalog = open();
  const odd: Row = {
    objectId: "t$1",
    objectType: "table_version",
    location: undefined,
    properties: { v: "1" },
  };
  await catalog.mutate((draft) => {
    for (const name of ["t", "plain", "gone"]) draft.put(table(name));
    draft.put(odd);
  });
  const lease = await engine.acquire(location);
  try {
    await lease.table.addColumns([{ name: "extra", valueSql: "nullif(object_id, 'plain')" }]);
  } finally {
    lease.release();
  }
  // A row without a value in that column may change; a row with a value would lose it.
  await catalog.mutate((draft) => draft.put(table("plain", { a: "b" })));
  const change = catalog.mutate((draft) => draft.put(table("t", { a: "b" })));
  await assert.rejects(change, (error) => isLanceError(error, "Unsupported"));
  await catalog.mutate((draft) => draft.delete("gone"));
  for (let i = 0; i < 8; i++) await catalog.mutate((draft) => draft.put(table(`new${i}`)));
  const state = await open().read();
  assert.deepEqual(state.get("t$1"), odd);
  assert.equal(state.size, 3 + 8);
  const { table: now, release } = await engine.acquire(location);
  await now.checkoutLatest();
  assert.equal(await now.countRows("extra = object_id"), 2);
  release();
  assert.equal(isFragmented((await readVersion(dataset)).manifest), false);
});
