import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { openWorkshop, putFile, ROWS, type Workshop } from "../../../../test/fixtures/dir/maintenance.ts";
import { BasePathSchema, type Manifest } from "../../../gen/lance/format/table_pb.ts";
import { InsertMode } from "../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { type DatasetRef, manifestKey } from "../format/dataset.ts";
import { copyMessage } from "../format/files/manifest.ts";
import { buildManifestFile } from "../format/files/manifest-file.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import type { ObjectStore } from "../format/storage.ts";
import { readVersion } from "../format/versions/version-files.ts";
import { filesOf } from "../format/versions/version-parts.ts";
import { findUnnamedFiles } from "./unnamed-files.ts";

const disk = createLocalStore();

/** Makes a table whose three versions have no data file in common. */
async function makeTable({ base, client }: Workshop): Promise<DatasetRef> {
  await client.upload("createTable", "t", {}, ROWS);
  for (let more = 2; more > 0; more--)
    await client.upload("insertIntoTable", "t", { mode: InsertMode.OVERWRITE }, ROWS);
  return { store: disk, root: join(base, "t.lance").slice(1) };
}

/** Returns the key of the data file that a version has alone. */
async function dataOf(dataset: DatasetRef, version: bigint): Promise<string> {
  const keys = filesOf(dataset, (await readVersion(dataset, version)).manifest);
  return keys.find((key) => key.endsWith(".lance")) as string;
}

const found = async (dataset: DatasetRef) => (await findUnnamedFiles(dataset)).map(({ key }) => key);

/** Writes a version that differs from one in its manifest alone. */
async function rewrite(
  dataset: DatasetRef,
  version: bigint,
  change: (manifest: Manifest) => void,
  key = manifestKey(dataset, version, "V2"),
): Promise<void> {
  const { manifest, signature } = await readVersion(dataset, version);
  const changed = Object.assign(copyMessage(manifest), { transactionSection: 0n, indexSection: undefined });
  change(changed);
  await disk.put(key, buildManifestFile(new Uint8Array(), new Uint8Array(), changed, signature));
}

test("finds nothing in a table with a version that is gone when it is read", async (t) => {
  const dataset = await makeTable(await openWorkshop(t));
  // As while the directory of a table is replaced by another.
  const getTail: ObjectStore["getTail"] = async (key, length) =>
    key === manifestKey(dataset, 1n, "V2") ? undefined : disk.getTail(key, length);
  assert.deepEqual(await found({ ...dataset, store: { ...disk, getTail } }), []);
});

test("finds what no version has, though one is gone at the first look", async (t) => {
  const workshop = await openWorkshop(t);
  const dataset = await makeTable(workshop);
  await putFile(workshop, "t.lance/data/left.lance");
  let looks = 0;
  const getTail: ObjectStore["getTail"] = async (key, length) =>
    key === manifestKey(dataset, 1n, "V2") && looks++ === 0 ? undefined : disk.getTail(key, length);
  assert.deepEqual(await found({ ...dataset, store: { ...disk, getTail } }), [
    `${dataset.root}/data/left.lance`,
  ]);
});

test("a file that a version names which came and was overwritten meanwhile is in use", async (t) => {
  const dataset = await makeTable(await openWorkshop(t));
  let isLate = false;
  async function* list(directory: string) {
    for await (const page of disk.list(directory))
      yield page.filter(
        ({ name }) =>
          isLate || ![2n, 3n].some((version) => manifestKey(dataset, version, "V2").endsWith(name)),
      );
  }
  const files = await findUnnamedFiles({ ...dataset, store: { ...disk, list } });
  isLate = true;
  const second = await dataOf(dataset, 2n);
  const file = files.find(({ key }) => key === second);
  assert.equal(await file?.isNamedNow(), true);
  for (const { isNamedNow } of files) assert.equal(await isNamedNow(), true);
});

test("a file of an old version is in use when the directory has been replaced by a former one", async (t) => {
  const dataset = await makeTable(await openWorkshop(t));
  const first = await dataOf(dataset, 1n);
  const before = await disk.get(manifestKey(dataset, 1n, "V2"));
  await rewrite(dataset, 1n, (manifest) => (manifest.fragments = []));
  const file = (await findUnnamedFiles(dataset)).find(({ key }) => key === first);
  assert.equal(await file?.isNamedNow(), false);
  await disk.put(manifestKey(dataset, 1n, "V2"), before as Uint8Array);
  assert.equal(await file?.isNamedNow(), true);
});

test("a staged manifest of a version to come stays, with its files", async (t) => {
  const dataset = await makeTable(await openWorkshop(t));
  // As writers leave it that have committed the version in another catalog, and put it in its place afterwards.
  const key = manifestKey(dataset, 3n, "V2");
  const staged = `${key}-${randomUUID()}`;
  await disk.move(key, staged);
  assert.deepEqual(await found(dataset), []);
  await disk.copy(staged, key);
  assert.deepEqual(
    await found(dataset),
    [staged],
    "a staged manifest of a version that exists is a leftover",
  );
});

test("detached versions and those of the other naming scheme keep their files", async (t) => {
  const dataset = await makeTable(await openWorkshop(t));
  const { root } = dataset;
  const detached = `${root}/_versions/d${(1n << 63n) + 7n}.manifest`;
  await disk.move(manifestKey(dataset, 1n, "V2"), detached);
  await disk.move(manifestKey(dataset, 2n, "V2"), manifestKey(dataset, 2n, "V1"));
  assert.deepEqual(await found(dataset), []);
  await disk.delete(detached);
  assert.equal((await found(dataset)).length, 2, "its data and its transaction");
});

test("a file stays that a version names by another directory, or with folders", async (t) => {
  const dataset = await makeTable(await openWorkshop(t));
  const basePaths = [create(BasePathSchema, { id: 1, path: disk.uriOf(dataset.root) })];
  await rewrite(dataset, 1n, (manifest) => {
    manifest.basePaths = basePaths;
    for (const file of manifest.fragments[0]?.files ?? []) {
      file.path = `data/${file.path}`;
      file.baseId = 1;
    }
  });
  assert.deepEqual(await found(dataset), []);
});

test("the blobs of a data file stay, whatever the type of its columns", async (t) => {
  const workshop = await openWorkshop(t);
  const dataset = await makeTable(workshop);
  const directory = (await dataOf(dataset, 3n)).replace(/\.lance$/, "");
  const blobs = directory.slice(dataset.root.length);
  await putFile(workshop, `t.lance${blobs}/1.blob`);
  assert.deepEqual(await found(dataset), []);
});

test("refuses versions whose fragments may have files that are not known here", async (t) => {
  const dataset = await makeTable(await openWorkshop(t));
  await rewrite(dataset, 1n, (manifest) => {
    // Row ids in a file of their own.
    for (const fragment of manifest.fragments)
      fragment.$unknown = [{ no: 6, wireType: 2, data: Uint8Array.of(2, 10, 0) }];
  });
  await assert.rejects(
    found(dataset),
    (error) => error instanceof LanceError && error.kind === "Unsupported",
  );
  await rewrite(dataset, 1n, (manifest) => {
    for (const fragment of manifest.fragments)
      fragment.$unknown = [{ no: 5, wireType: 2, data: Uint8Array.of(1, 0) }];
  });
  assert.deepEqual(await found(dataset), []);
});
