import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type TestContext, test } from "vitest";
import { table } from "../../../../../test/fixtures/catalog/catalog.ts";
import { silent, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import {
  DataFragmentSchema,
  Manifest_DataStorageFormatSchema,
} from "../../../../gen/lance/format/table_pb.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import { createEngine, type Engine } from "../../engine/engine.ts";
import { commitChange } from "../../format/changes/commit.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { buildManifestFile, readSection } from "../../format/files/manifest-file.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { keyIn } from "../../format/storage.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { type Catalog, createCatalog } from "../catalog.ts";
import type { Row } from "../state/row.ts";
import { createManifestTable, MANIFEST_NAME } from "./manifest-table.ts";

const store = createLocalStore();

/** Changes the data format of a dataset's newest version, which has no rows. */
async function changeFormat(dataset: DatasetRef, version: string): Promise<void> {
  const file = await readVersion(dataset);
  const { key, manifest, signature } = file;
  const transaction = await readSection(file, manifest.transactionSection ?? 0n);
  const dataFormat = create(Manifest_DataStorageFormatSchema, { fileFormat: "lance", version });
  const changed = { ...manifest, dataFormat, transactionSection: 0n };
  await store.put(key, buildManifestFile(new Uint8Array(), transaction, changed, signature));
}

/** Wraps an engine as a release that creates new datasets in a data format. */
function releasedWith(engine: Engine, format: string): Engine {
  return {
    ...engine,
    async create(location, file, mode) {
      const version = await engine.create(location, file, mode);
      await changeFormat({ store, root: store.keyOf(location) }, format);
      return version;
    },
  };
}

/** Creates a catalog with an empty manifest in a data format. Default: that of new datasets. */
async function createWorld(t: TestContext, format: string, released = format) {
  const base = await temporaryDirectory(t);
  const original = createEngine({ log: silent });
  const engine = releasedWith(original, released);
  t.onTestFinished(() => engine.close());
  const dataset = { store, root: keyIn(store.keyOf(base), MANIFEST_NAME) };
  const open = () => createCatalog(createManifestTable(base, engine, store), silent, { maintenance: false });
  await createManifestTable(base, engine, store).ensure();
  await changeFormat(dataset, format);
  return { base, dataset, engine, open };
}

const put = (catalog: Catalog, ...rows: Row[]) =>
  catalog.mutate((draft) => {
    for (const row of rows) draft.put(row);
  });

test("writes a manifest of a newer data format in that format, and stays strictly ordered", async (t) => {
  const world = await createWorld(t, "2.3");
  const catalogs = [world.open(), world.open()];
  const names = Array.from({ length: 24 }, (_, i) => `t${i}`);
  // Both race for every name, and each name has a winner.
  const claim = (catalog: Catalog, name: string, by: string) =>
    catalog.mutate((draft) => {
      if (draft.get(name) !== undefined) return false;
      draft.put(table(name, { by, text: "é\u{1f600}" }));
      return true;
    });
  const won = await Promise.all(
    names.map(async (name) => Promise.all(catalogs.map((catalog, i) => claim(catalog, name, String(i))))),
  );
  for (const winners of won) assert.equal(winners.filter(Boolean).length, 1);
  await Promise.all(catalogs.map((catalog, i) => catalog.mutate((draft) => draft.delete(`t${i}`))));
  await put(catalogs[0] as Catalog, table("t2", { changed: "yes" }));

  const state = await world.open().read();
  assert.deepEqual([...state.descendants("")].sort(), names.slice(2).sort());
  assert.deepEqual(state.get("t2")?.properties, { changed: "yes" });
  assert.deepEqual(state.get("t3")?.properties["text"], "é\u{1f600}");
  const { manifest } = await readVersion(world.dataset);
  assert.equal(manifest.dataFormat?.version, "2.3");
  const files = manifest.fragments.flatMap((fragment) => fragment.files);
  for (const file of files) assert.deepEqual([file.fileMajorVersion, file.fileMinorVersion], [2, 3]);
  assert.deepEqual(
    (await readdir(world.base)).filter((name) => name.startsWith(".staging-")),
    [],
  );
});

test("joins fragments of a newer data format", async (t) => {
  const world = await createWorld(t, "2.3");
  const catalog = world.open();
  const manifest = createManifestTable(world.base, world.engine, store);
  for (const name of ["a", "b"]) await put(catalog, table(name));
  const version = Number((await readVersion(world.dataset)).manifest.version);
  const fragments = (await manifest.manifestOf(version))?.fragments ?? [];
  const prepared = await manifest.prepareJoin(version, await catalog.read(), fragments);
  assert.equal((await manifest.join(version, prepared))?.addresses.size, 2);
  assert.equal((await world.open().read()).size, 2);
});

test("does not write a data format of which the engine has only a draft, and does not report a failure to read it as damage", async (t) => {
  const { base, dataset, open } = await createWorld(t, "2.3", "2.2");
  const unsupported = (error: unknown) => isLanceError(error, "Unsupported");
  assert.equal((await open().read()).size, 0, "no file, no failure");
  await assert.rejects(put(open(), table("a")), unsupported);
  assert.deepEqual(
    (await readdir(base)).filter((name) => name.startsWith(".staging-")),
    [],
  );
  // A file that the engine's draft of the format cannot read.
  await store.put(`${dataset.root}/data/later.lance`, Buffer.alloc(4096, 7));
  await commitChange(dataset, (manifest) => {
    const files = [
      {
        path: "later.lance",
        fields: [0, 1, 2, 3],
        columnIndices: [0, 1, 2, 3],
        fileMajorVersion: 2,
        fileMinorVersion: 3,
      },
    ];
    manifest.fragments = [create(DataFragmentSchema, { physicalRows: 1n, files })];
    return { operation: { case: undefined } };
  });
  await assert.rejects(open().read(), unsupported);
});

test("refuses an unknown data format, and fields and flags of newer software", async (t) => {
  const unknown = await createWorld(t, "2.9", "2.2");
  const unsupported = (error: unknown) => isLanceError(error, "Unsupported");
  await assert.rejects(unknown.open().read(), unsupported);
  await assert.rejects(put(unknown.open(), table("a")), unsupported);
  const odd = await createWorld(t, "0.1", "2.2");
  await assert.rejects(put(odd.open(), table("a")), unsupported);
  for (const more of [
    { writerFeatureFlags: 1n << 40n },
    { $unknown: [{ no: 30, wireType: 0, data: Uint8Array.of(1) }] },
  ]) {
    const { dataset, open } = await createWorld(t, "2.1");
    await put(open(), table("a"));
    await commitChange(dataset, (manifest) => {
      Object.assign(manifest, more);
      return { operation: { case: undefined } };
    });
    const catalog = open();
    assert.equal((await catalog.read()).size, 1, "it can be read");
    await assert.rejects(put(catalog, table("b")), unsupported);
    await assert.rejects(
      commitChange(dataset, () => ({ operation: { case: undefined } })),
      unsupported,
    );
    assert.equal((await readdir(join("/", dataset.root, "data"))).length, 1, "nothing is left behind");
  }
});
