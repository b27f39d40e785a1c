import assert from "node:assert/strict";
import { cp, rm } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { silent, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { jobsOf, openView, rows } from "../../../../../test/fixtures/dir/views.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { DescribeMaterializedViewRequestSchema } from "../../../../gen/lance/gateway/v1/view_pb.ts";
import { InsertMode } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { commitMetadata } from "../../format/changes/commit.ts";
import { openDirectory } from "../../open-directory.ts";
import { optimizeTable } from "../../upkeep/optimize.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";
import { createViewExtensions } from "./views.ts";

/** Compacts a table; returns whether it had fragments to join. */
async function compact(root: string, name: string): Promise<boolean> {
  const { context, close } = await openDirectory({ root, log: silent });
  const table = await requireTable(context, { id: [name] });
  const { signal } = new AbortController();
  const { fragmentsRemoved } = await optimizeTable(context, table, "all", signal).finally(close);
  return fragmentsRemoved > 0;
}

test("a refresh takes only the added rows while nothing else happens", async (t) => {
  const { client, refresh, ids } = await openView(t, "SELECT * FROM t WHERE id % 2 = 0");
  assert.deepEqual(await refresh(), ["full", 5]);
  assert.deepEqual(await refresh(), ["none", 0]);
  await client.upload("insertIntoTable", "t", {}, rows(10, 14));
  await client.upload("insertIntoTable", "t", {}, rows(14, 16));
  assert.deepEqual(await refresh(), ["incremental", 3]);
  await client.upload("insertIntoTable", "t", {}, rows(17, 18));
  assert.deepEqual(await refresh(), ["incremental", 0]);
  assert.deepEqual(await refresh(), ["none", 0]);
  assert.deepEqual(await ids(), [0, 2, 4, 6, 8, 10, 12, 14]);
});

test("a refresh takes only the added rows when the source was compacted or indexed", async (t) => {
  const { root, client, refresh, ids } = await openView(t, "SELECT * FROM t");
  const add = async (from: number) => {
    for (let id = from; id < from + 3; id++)
      await client.upload("insertIntoTable", "t", {}, rows(id, id + 1));
  };
  await add(10);
  assert.deepEqual(await refresh(), ["full", 13]);
  assert.ok(await compact(root, "t"));
  assert.deepEqual(await refresh(), ["incremental", 0]);
  await client.call("createTableScalarIndex", "t", { column: "id", indexType: "BTREE", name: "by_id" });
  await add(13);
  assert.deepEqual(await refresh(), ["incremental", 3]);
  await compact(root, "t");
  assert.deepEqual(await refresh(), ["incremental", 0]);
  // A compaction joins rows that the view has with others, and keeps their order.
  await add(16);
  assert.ok(await compact(root, "t"));
  await add(19);
  assert.ok(await compact(root, "t"));
  assert.deepEqual(await refresh(), ["incremental", 6]);
  assert.deepEqual(await refresh(), ["none", 0]);
  assert.equal(new Set(await ids()).size, 22);
  await compact(root, "t");
  await client.call("deleteFromTable", "t", { predicate: "id = 3" });
  assert.deepEqual(await refresh(), ["full", 21]);
  assert.deepEqual(await ids(), [0, 1, 2, ...Array.from({ length: 18 }, (_, i) => i + 4)]);
});

test("a refresh takes only the added rows when the view was compacted", async (t) => {
  const { root, client, refresh, ids } = await openView(t, "SELECT * FROM t");
  for (let id = 10; id < 13; id++) {
    await refresh();
    await client.upload("insertIntoTable", "t", {}, rows(id, id + 1));
  }
  assert.ok(await compact(root, "v"));
  assert.deepEqual(await refresh(), ["incremental", 1]);
  assert.ok(await compact(root, "v"));
  assert.deepEqual(await refresh(), ["none", 0]);
  await client.upload("insertIntoTable", "v", {}, rows(50, 51));
  assert.ok(await compact(root, "v"));
  assert.deepEqual(await refresh(), ["full", 13]);
  assert.equal((await ids()).length, 13);
});

test("a refresh takes only the added rows when metadata of the source and of the view changed", async (t) => {
  const { root, client, refresh } = await openView(t, "SELECT * FROM t");
  await refresh();
  for (const name of ["t", "v"])
    await client.call("updateTableSchemaMetadata", name, { metadata: { a: "b" } });
  await client.call("updateFieldMetadata", "v", {
    updates: [{ path: "id", metadata: { a: { value: "b" } } }],
  });
  assert.deepEqual(await refresh(), ["incremental", 0]);
  await client.upload("insertIntoTable", "t", {}, rows(50, 51));
  assert.ok(await compact(root, "t"));
  assert.deepEqual(await refresh(), ["incremental", 1]);
  await client.call("alterTableAlterColumns", "v", { alterations: [{ path: "id", rename: "other" }] });
  await client.upload("insertIntoTable", "t", {}, rows(51, 52));
  assert.equal((await refresh())[0], "full");
});

test("a change of rows of the source, of the view or of their columns rebuilds the view", async (t) => {
  const { client, refresh, ids } = await openView(t, "SELECT id FROM t");
  await refresh();
  await client.call("deleteFromTable", "t", { predicate: "id = 3" });
  assert.deepEqual(await refresh(), ["full", 9]);
  await client.call("updateTable", "t", {
    updates: [{ column: "id", expression: "id + 100" }],
    predicate: "id = 4",
  });
  assert.deepEqual(await refresh(), ["full", 9]);
  await client.upload("insertIntoTable", "v", {}, rows(50, 51));
  await client.upload("insertIntoTable", "t", {}, rows(20, 21));
  assert.deepEqual(await refresh(), ["full", 10]);
  await client.call("alterTableAddColumns", "t", { newColumns: [{ name: "other", expression: "-id" }] });
  await client.call("alterTableAlterColumns", "t", {
    alterations: [
      { path: "id", rename: "other" },
      { path: "other", rename: "id" },
    ],
  });
  assert.deepEqual(await refresh(), ["full", 10]);
  assert.equal((await ids()).at(-1), 0);
  assert.deepEqual(await refresh({ srcVersion: 1n }), ["full", 10]);
  await client.upload("insertIntoTable", "t", { mode: InsertMode.OVERWRITE }, rows(0, 2));
  assert.deepEqual(await refresh(), ["full", 2]);
  await client.call("dropTable", "t");
  await client.upload("createTable", "t", {}, rows(0, 3));
  assert.deepEqual(await refresh(), ["full", 3]);
});

test("a source that was created again with the same number of versions rebuilds the view", async (t) => {
  const { client, refresh, ids } = await openView(t, "SELECT id FROM t");
  assert.deepEqual(await refresh(), ["full", 10]);
  await client.call("dropTable", "t");
  await client.upload("createTable", "t", {}, rows(20, 23));
  assert.deepEqual(await refresh(), ["full", 3]);
  assert.deepEqual(await ids(), [20, 21, 22]);
  assert.deepEqual(await refresh(), ["none", 0]);
});

test("a source that was restored from a backup and has grown again rebuilds the view", async (t) => {
  const { client, refresh, ids } = await openView(t, "SELECT id FROM t");
  const { location = "" } = await client.call("describeTable", "t");
  const backup = await temporaryDirectory(t);
  await cp(location, backup, { recursive: true });
  await client.upload("insertIntoTable", "t", {}, rows(10, 12));
  assert.deepEqual(await refresh(), ["full", 12]);
  await rm(location, { recursive: true });
  await cp(backup, location, { recursive: true });
  await client.upload("insertIntoTable", "t", {}, rows(50, 52));
  await client.upload("insertIntoTable", "t", {}, rows(60, 62));
  assert.deepEqual(await refresh(), ["full", 14]);
  assert.deepEqual((await ids()).slice(10), [50, 51, 60, 61]);
});

test("a source that another program recorded in a form of its own rebuilds the view", async (t) => {
  const { root, refresh, ids } = await openView(t, "SELECT id FROM t");
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const { describeMaterializedView } = createViewExtensions(context, () => assert.fail());
  const request = create(DescribeMaterializedViewRequestSchema);
  const dataset = datasetOf(context, await requireTable(context, { id: ["v"] }));
  const known = { source: "t", sourceVersion: "1", sourceIdentity: "a 1.0", rowsVersion: "1", query: "" };
  const parts = [
    { sourceVersion: "one" },
    { sourceVersion: 1 },
    { rowsVersion: "-1" },
    { query: null },
    { sourceIdentity: undefined },
  ];
  const wrong = ["", "{", "null", "7", "{}", ...parts.map((part) => JSON.stringify({ ...known, ...part }))];
  for (const text of wrong) {
    const entries = { "lance_gateway.view.state": text };
    await commitMetadata(dataset, { tableMetadata: { entries } });
    const { sourceVersion } = await describeMaterializedView(
      request,
      beginCall(LanceNamespaceService.method.describeTable, { id: ["v"] }),
    );
    assert.equal(sourceVersion, undefined, text);
    assert.deepEqual(await refresh(), ["full", 10], text);
  }
  assert.equal((await ids()).length, 10);
});

test("a limit is kept by full refreshes and by those of added rows", async (t) => {
  const { client, refresh, ids } = await openView(t, "SELECT id FROM t LIMIT 12");
  assert.deepEqual(await refresh(), ["full", 10]);
  await client.upload("insertIntoTable", "t", {}, rows(10, 20));
  assert.deepEqual(await refresh(), ["incremental", 2]);
  await client.upload("insertIntoTable", "t", {}, rows(20, 30));
  assert.deepEqual(await refresh(), ["none", 0]);
  assert.equal((await ids()).length, 12);
});

test("a view has no rows for which several lists of its condition make null, also of those that are added", async (t) => {
  const { client, refresh } = await openView(
    t,
    "SELECT * FROM t WHERE id IN (1, 11) AND id NOT IN (3, NULL)",
  );
  assert.deepEqual(await refresh(), ["full", 0]);
  await client.upload("insertIntoTable", "t", {}, rows(10, 12));
  assert.deepEqual(await refresh(), ["incremental", 0]);
});

test("a view that is larger than a part is written part by part, as one version", async (t) => {
  const { root, client, refresh, ids } = await openView(t, "SELECT id FROM t", { uploadPartBytes: 20_000 });
  await client.upload("insertIntoTable", "t", {}, rows(10, 20_000));
  assert.deepEqual(await refresh(), ["full", 20_000]);
  await client.upload("insertIntoTable", "t", {}, rows(20_000, 40_000));
  assert.deepEqual(await refresh(), ["incremental", 20_000]);
  assert.equal((await ids()).length, 40_000);
  const { version } = await client.call("describeTable", "v", { loadDetailedMetadata: true });
  assert.equal(version, 3n);
  assert.equal((await jobsOf(root).list(assert.fail)).length, 2);
});

test("a limit that is too large for the engine has no effect", async (t) => {
  const { refresh, ids } = await openView(t, `SELECT id FROM t LIMIT ${2 ** 32 + 1}`);
  assert.deepEqual(await refresh(), ["full", 10]);
  assert.equal((await ids()).length, 10);
});
