import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Field, List, Struct, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { type TestContext, test } from "vitest";
import { openClient, silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../test/fixtures/dir/rows.ts";
import { createEngine } from "../engine/engine.ts";
import { loadNative } from "../engine/native/load.ts";
import { readIndices } from "../format/files/index-section.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { readVersion } from "../format/versions/version-files.ts";
import { openDirectory } from "../open-directory.ts";
import { requireTable } from "../operations/tables/find-table.ts";
import { datasetOf } from "../operations/tables/open-data.ts";
import { inspectTable, type Work } from "./inspect.ts";
import { optimizeTable, releaseSegments } from "./optimize.ts";

const SIGNAL = new AbortController().signal;

/** Opens a table `t` with an index and fragments outside it, whose first version cannot be read. */
async function openTable(t: TestContext) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0, 1, 2]));
  await client.call("createTableScalarIndex", "t", { column: "id", indexType: "BTREE", name: "by_id" });
  for (let id = 3; id < 9; id++) await client.upload("insertIntoTable", "t", {}, rows([id]));
  const versions = join(root, "data", "t.lance", "_versions");
  const oldest = (await readdir(versions))
    .filter((name) => name.endsWith(".manifest"))
    .sort()
    .at(-1);
  await writeFile(join(versions, oldest as string), "damaged");
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const table = await requireTable(context, { id: ["t"] });
  return {
    client,
    optimize: (work: Work) => optimizeTable(context, table, work, SIGNAL),
    inspect: () => inspectTable(datasetOf(context, table)),
  };
}

test("joins fragments without a look at old versions, and leaves the indices for later", async (t) => {
  const { client, optimize, inspect } = await openTable(t);
  const before = await inspect();
  assert.deepEqual([before.fragments, before.small.outside, before.unindexedRows], [7, 6, 6]);
  const { fragmentsRemoved, fragmentsAdded } = await optimize("join");
  assert.deepEqual([fragmentsRemoved, fragmentsAdded], [6, 1]);
  const after = await inspect();
  assert.deepEqual([after.fragments, after.small.outside, after.unindexedRows], [2, 1, 6]);
  const ids = idsOf(await client.query("t", { k: 100n, vector: { singleVector: [0, 0] } }));
  assert.deepEqual(
    ids.sort((a, b) => a - b),
    [0, 1, 2, 3, 4, 5, 6, 7, 8],
  );
  await client.upload("insertIntoTable", "t", {}, rows([9]));
});

test("does not rewrite rows that the engine may misread", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const type = new Struct([new Field("texts", new List(new Field("item", new Utf8(), true)), true)]);
  const row = tableToIPC(new Table({ s: vectorFromArray([{ texts: ["a"] }, null], type) }), "stream");
  await client.upload("createTable", "t", {}, row);
  await client.upload("insertIntoTable", "t", {}, row);
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const table = await requireTable(context, { id: ["t"] });
  const done = await optimizeTable(context, table, "all", SIGNAL);
  assert.deepEqual(done, { fragmentsRemoved: 0, fragmentsAdded: 0, version: 2n });
  const { misread, fragments } = await inspectTable(datasetOf(context, table));
  assert.deepEqual([misread, fragments], [true, 2]);
});

test("the engine reads every version when it also brings the indices up to date", async (t) => {
  const { optimize, inspect } = await openTable(t);
  await assert.rejects(optimize("all"));
  assert.equal((await inspect()).unindexedRows, 6);
});

test("drops an index on a column that is gone, over which the engine fails", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0, 1, 2]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const table = await requireTable(context, { id: ["t"] });
  const lease = await context.engine.acquire(table.path);
  t.onTestFinished(lease.release);
  // The engine builds the index of a version that still has the column.
  await client.call("alterTableDropColumns", "t", { columns: ["name"] });
  const btree = loadNative().Index.btree();
  const job = await lease.table.createIndexAsync(btree, "name", false, undefined, "by_name", true);
  await job.wait();
  assert.equal((await client.call("listTableIndices", "t")).indexes.length, 1);
  await optimizeTable(context, table, "all", SIGNAL);
  assert.deepEqual((await client.call("listTableIndices", "t")).indexes, []);
  assert.deepEqual(idsOf(await client.query("t", { filter: "id = 1" })), [1]);
});

test("small segments of an index of vectors are released when there are many, and no row is lost", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const ids = Array.from({ length: 300 }, (_, id) => id);
  await client.upload("createTable", "t", {}, rows(ids));
  await client.call("createTableIndex", "t", { column: "vector", indexType: "IVF_FLAT", name: "near" });
  await client.call("createTableIndex", "t", { column: "id", indexType: "BTREE", name: "by_id" });
  const engine = createEngine({ log: silent });
  t.onTestFinished(() => engine.close());
  // Each time the engine brings the indices up to date, that of the vectors gets a segment.
  const addSegment = async (id: number) => {
    await client.upload("insertIntoTable", "t", {}, rows([id]));
    const lease = await engine.acquire(join(root, "data", "t.lance"));
    await lease.table.optimize(0);
    lease.release();
  };
  const store = createLocalStore();
  const dataset = { store, root: store.keyOf(join(root, "data", "t.lance")), branch: undefined };
  const segments = async () => {
    const indices = await readIndices(await readVersion(dataset));
    return indices.map(({ name, segments, indexedRows }) => [name, segments, Number(indexedRows)]);
  };
  for (let added = 0; added < 7; added++) {
    assert.equal(await releaseSegments(dataset, t.signal), 0);
    await addSegment(300 + added);
  }
  assert.deepEqual(await segments(), [
    ["by_id", 1, 307],
    ["near", 8, 307],
  ]);
  assert.equal(await releaseSegments(dataset, t.signal), 7);
  assert.deepEqual(await segments(), [
    ["by_id", 1, 307],
    ["near", 1, 300],
  ]);
  const nearest = { k: 3n, vector: { singleVector: [305, 305] } };
  assert.deepEqual(idsOf(await client.query("t", nearest)).sort(), [304, 305, 306]);
  await addSegment(307);
  assert.deepEqual(await segments(), [
    ["by_id", 1, 308],
    ["near", 2, 308],
  ]);
});
