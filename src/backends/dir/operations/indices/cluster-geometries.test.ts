import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { Field, Float64, Int32, Schema, Struct, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { failsWith, silent, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { type Drive, openOnCluster } from "../../../../../test/fixtures/ray/open-on-cluster.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceDbService, PrewarmIndexRequestSchema } from "../../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { openDirectory } from "../../open-directory.ts";
import { inspectTable, needOf } from "../../upkeep/inspect.ts";
import { DEFAULT_POLICY } from "../../upkeep/policy.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";

const IDS = Array.from({ length: 300 }, (_, id) => id);

/** Returns points with their ids, whose column says that they are points of GeoArrow. */
function points(ids: readonly number[], type = "geoarrow.point"): Uint8Array {
  const coordinates = new Struct([
    new Field("x", new Float64(), false),
    new Field("y", new Float64(), false),
  ]);
  const at = vectorFromArray(
    ids.map((id) => ({ x: id % 10, y: Math.floor(id / 10) })),
    coordinates,
  );
  const id = vectorFromArray(ids, new Int32());
  const fields = [
    new Field("id", id.type, true),
    new Field("at", coordinates, true, new Map([["ARROW:extension:name", type]])),
    new Field("bare", coordinates, true),
  ];
  return tableToIPC(new Table(new Schema(fields), { id, at, bare: at }), "stream");
}

test("an RTREE index, which the engine ignores, is built by the cluster, listed, described and dropped", async (t) => {
  const types: unknown[] = [];
  let typeUrl = "/lance.index.pb.RTreeIndexDetails";
  const root = await temporaryDirectory(t);
  const drive: Drive = async (driver) => {
    const { task } = await driver.task();
    types.push(task?.["index_type"]);
    const uuid = randomUUID();
    const { location = "" } = await client.call("describeTable", "g", {});
    const directory = join(location, "_indices", uuid);
    assert.ok(directory.startsWith(root));
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, "page_data.lance"), "x");
    const segment = {
      ...{ uuid, fields: [1], dataset_version: 1, fragment_ids: [0], index_version: 0, details: "" },
      ...{ type_url: typeUrl, files: [{ path: "page_data.lance", size: 1 }] },
    };
    await driver.finish({ result: { segments: [segment] } });
  };
  const { client, backend } = await openOnCluster(t, root, "create_index", drive, 1_000);
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  await client.upload("createTable", "g", {}, points(IDS));
  const build = (column: string, more: object = {}) =>
    client.call("createTableScalarIndex", "g", { column, indexType: "RTREE", name: "i", ...more });
  const names = async () =>
    (await client.call("listTableIndices", "g", {})).indexes.map(({ indexName, indexType, columns }) => [
      indexName,
      indexType,
      ...columns,
    ]);
  for (const column of ["id", "bare", "at.x"])
    await assert.rejects(build(column), /requires a column of geometries/);
  await client.upload("createTable", "other", {}, points([1], "geoarrow.geometry"));
  const ofOther = { column: "at", indexType: "RTREE" };
  await assert.rejects(client.call("createTableIndex", "other", ofOther), failsWith("InvalidInput"));
  typeUrl = "/lance.table.BTreeIndexDetails";
  await assert.rejects(build("at"), failsWith("Internal"));
  assert.deepEqual(await names(), []);
  typeUrl = "/lance.index.pb.RTreeIndexDetails";
  await build("at");
  await assert.rejects(build("at"), failsWith("TableIndexAlreadyExists"));
  await build("at", { replace: true });
  assert.deepEqual(types, ["RTREE", "RTREE", "RTREE"]);
  assert.deepEqual(await names(), [["i", "RTREE", "at"]]);
  const stats = await client.call("describeTableIndexStats", "g", { indexName: "i" });
  assert.deepEqual([stats.indexType, stats.numIndexedRows, stats.numUnindexedRows], ["RTREE", 300n, 0n]);
  const prewarm = beginCall(LanceDbService.method.prewarmIndex, { id: ["g"] });
  await assert.rejects(
    async () =>
      backend.extensions?.prewarmIndex?.(create(PrewarmIndexRequestSchema, { indexName: "i" }), prewarm),
    failsWith("Unsupported"),
  );
  await client.upload("insertIntoTable", "g", {}, points([1000, 1001]));
  await client.call("deleteFromTable", "g", { predicate: "id < 10" });
  const { numUnindexedRows } = await client.call("describeTableIndexStats", "g", { indexName: "i" });
  assert.equal(numUnindexedRows, 2n);
  // The engine can neither extend the index nor join what it covers, so that upkeep has nothing to do.
  const dataset = datasetOf(context, await requireTable(context, { id: ["g"] }));
  const { unindexedRows, small, fragments } = await inspectTable(dataset);
  assert.deepEqual([unindexedRows, small.fragments, small.rows, fragments], [0, 1, 2, 2]);
  await client.call("deleteFromTable", "g", { predicate: "id < 150" });
  const halved = await inspectTable(dataset);
  assert.equal(needOf(halved, DEFAULT_POLICY), undefined);
  assert.deepEqual(needOf(halved, DEFAULT_POLICY, true), { work: "join", when: "now" });
  await client.call("dropTableIndex", "g", { indexName: "i" });
  assert.deepEqual(await names(), []);
  await client.call("createTableIndex", "g", { column: "id", indexType: "BTREE", name: "i" });
  await assert.rejects(build("at", { replace: true }), failsWith("Unsupported"));
  assert.deepEqual(await names(), [["i", "BTREE", "id"]]);
});
