import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Int32, Table, tableFromIPC, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { INDEX_SEEDS } from "../../format/changes/index-seed.ts";
import { readIndices } from "../../format/files/index-section.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { openDirectory } from "../../open-directory.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";
import { growIndex } from "./index-build.ts";

function rows(count: number, first = 0): Uint8Array {
  const ids = Array.from({ length: count }, (_, i) => first + i);
  const columns = {
    id: vectorFromArray(ids, new Int32()),
    name: vectorFromArray(
      ids.map((id) => `the name of row ${id}`),
      new Utf8(),
    ),
  };
  return tableToIPC(new Table(columns), "stream");
}

const KINDS = [
  { indexType: "NGRAM", column: "name", filter: "contains(name, 'row 477')", found: [477] },
  { indexType: "ZONEMAP", column: "id", filter: "id = 477", found: [477] },
  { indexType: "ZONEMAP", column: "name", filter: "name = 'the name of row 477'", found: [477] },
  { indexType: "BLOOMFILTER", column: "id", filter: "id = 477", found: [477] },
] as const;

async function idsOf(client: TestClient, filter: string): Promise<number[]> {
  const result = await client.query("t", { filter, k: 1000n });
  return [...(tableFromIPC(result).getChild("id") ?? [])].map(Number);
}

for (const { indexType, column, filter, found } of KINDS) {
  test(`an index of type ${indexType} on ${column} covers all rows, and queries use it`, async (t) => {
    const client = await openClient(t, await temporaryDirectory(t));
    await client.upload("createTable", "t", {}, rows(1000));
    await client.call("createTableIndex", "t", { column, indexType, name: "i" });
    const stats = await client.call("describeTableIndexStats", "t", { indexName: "i" });
    assert.deepEqual([stats.indexType, stats.numIndexedRows, stats.numUnindexedRows], [indexType, 1000n, 0n]);
    const { indexes } = await client.call("listTableIndices", "t");
    assert.deepEqual(
      indexes.map((index) => [index.indexName, index.indexType, index.columns]),
      [["i", indexType, [column]]],
    );
    const { plan } = await client.call("explainTableQueryPlan", "t", { query: { filter, k: 10n } });
    assert.match(plan, /ScalarIndexQuery: query=.*@i\(/);
    assert.deepEqual(await idsOf(client, filter), found);
    await client.upload("insertIntoTable", "t", {}, rows(1, 477));
    assert.deepEqual(await idsOf(client, filter), [...found, ...found]);
    await client.call("dropTableIndex", "t", { indexName: "i" });
    assert.deepEqual((await client.call("listTableIndices", "t")).indexes, []);
    assert.deepEqual(await idsOf(client, filter), [...found, ...found]);
  });
}

test("a Bloom filter has the number of rows and the false positives that the request asks for", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows(1000));
  const bloom = { column: "id", indexType: "BLOOM_FILTER", numberOfItems: 100, probability: 0.25 };
  await client.call("createTableIndex", "t", bloom);
  const [segment, ...others] = await readdir(join(root, "data", "t.lance", "_indices"), { recursive: true });
  const files = [segment, ...others].filter((name) => name?.endsWith("bloomfilter.lance"));
  const filters = await Promise.all(
    files.map((name) => readFile(join(root, "data", "t.lance", "_indices", name ?? ""))),
  );
  const full = filters.sort((a, b) => b.byteLength - a.byteLength)[0]?.toString("latin1") ?? "";
  assert.match(full, /bloomfilter_item\W{0,4}100\b/);
  assert.match(full, /bloomfilter_probability\W{0,4}0\.25\b/);
  assert.deepEqual(await idsOf(client, "id = 477"), [477]);
  for (const wrong of [
    { numberOfItems: 0 },
    { probability: 0 },
    { probability: 1 },
    { probability: Number.NaN },
  ])
    await assert.rejects(
      client.call("createTableIndex", "t", { ...bloom, ...wrong }),
      failsWith("InvalidInput"),
    );
});

test("an index that grows replaces another one, and stays beside the rest", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows(300));
  await client.call("createTableIndex", "t", { column: "id", indexType: "BTREE", name: "tree" });
  await client.call("createTableIndex", "t", { column: "id", indexType: "BTREE", name: "i" });
  const zones = { column: "id", indexType: "ZONEMAP", name: "i" };
  await assert.rejects(client.call("createTableIndex", "t", zones), failsWith("TableIndexAlreadyExists"));
  await client.call("createTableIndex", "t", { ...zones, replace: true });
  const { indexes } = await client.call("listTableIndices", "t");
  const found = indexes.map(({ indexName, indexType }) => `${indexName}: ${indexType}`).sort();
  assert.deepEqual(found, ["i: ZONEMAP", "tree: BTREE"]);
});

test("a column whose values the engine cannot index keeps no index", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows(300));
  const wrong = client.call("createTableIndex", "t", { column: "id", indexType: "NGRAM" });
  await assert.rejects(wrong, failsWith("InvalidInput"));
  assert.deepEqual((await client.call("listTableIndices", "t")).indexes, []);
});

test("a build that fails keeps the index that it would replace", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows(300));
  await client.call("createTableIndex", "t", { column: "id", indexType: "BTREE", name: "i" });
  const before = await client.call("listTableIndices", "t");
  const wrong = client.call("createTableIndex", "t", {
    column: "id",
    indexType: "NGRAM",
    name: "i",
    replace: true,
  });
  await assert.rejects(wrong, failsWith("InvalidInput"));
  assert.deepEqual(await client.call("listTableIndices", "t"), before);
  const { plan } = await client.call("explainTableQueryPlan", "t", { query: { filter: "id = 7", k: 10n } });
  assert.match(plan, /ScalarIndexQuery: query=.*@i\(/);
});

test("an index that another gateway makes meanwhile is not replaced by one of its name", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows(10));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const table = await requireTable(context, { id: ["t"] });
  const lease = await context.engine.acquire(table.path);
  t.onTestFinished(lease.release);
  const beside = new Proxy(lease.table, {
    get(target, key) {
      const value = target[key as keyof NativeTable] as (...args: unknown[]) => unknown;
      if (key !== "optimize") return value.bind(target);
      return async (...args: unknown[]) => {
        await client.call("createTableIndex", "t", { column: "id", indexType: "BTREE", name: "i" });
        return value.apply(target, args);
      };
    },
  });
  const { signal } = new AbortController();
  const index = { name: "i", column: "name", seed: INDEX_SEEDS.ZONEMAP, parameters: {}, replace: false };
  const dataset = datasetOf(context, table);
  await assert.rejects(growIndex(beside, dataset, index, signal), failsWith("TableIndexAlreadyExists"));
  const indices = await readIndices(await readVersion(dataset));
  assert.deepEqual(
    indices.map(({ name, type }) => [name, type]),
    [["i", "BTree"]],
  );
});
