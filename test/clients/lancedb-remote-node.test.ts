import assert from "node:assert/strict";
import { type Connection, connect, Index, MatchQuery, rerankers, type Table } from "@lancedb/lancedb";
import {
  Table as ArrowTable,
  Field,
  Int32,
  Int64,
  Schema,
  TimestampMicrosecond,
  vectorFromArray,
} from "apache-arrow";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { installedVersion } from "./support/installed.ts";
import { watchClient } from "./support/session.ts";

const TEXTS = ["red apple", "green apple", "red pear", "blue plum", "yellow quince", "green grape"];

const rowsOf = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => ({
    id: from + i,
    text: TEXTS[(from + i) % TEXTS.length] as string,
    vector: [from + i, 0, 0, 1],
  }));

const idsOf = (rows: { id: number }[]) => rows.map(({ id }) => id);

/** The texts of rows, each once. */
const textsOf = (rows: { text: string }[]) => [...new Set(rows.map(({ text }) => text))].sort();

const near = [2.2, 0, 0, 1];

describe("@lancedb/lancedb's remote client", () => {
  const client = watchClient("@lancedb/lancedb (Node, remote)", installedVersion("@lancedb/lancedb"));
  let gateway: GatewayProcess;
  let db: Connection;
  let fruit: Table;
  const connected = async () =>
    client.watch(await connect("db://shop", { apiKey: "k", hostOverride: gateway.uri }));
  beforeAll(async () => {
    gateway = await startGateway();
    db = await connected();
  });
  afterAll(async () => {
    db.close();
    await gateway.close();
  });

  it("creates tables in every mode, and lists and opens them", async () => {
    fruit = await db.createTable("fruit", rowsOf(0, 6));
    assert.equal(await fruit.countRows(), 6);
    await assert.rejects(db.createTable("fruit", rowsOf(0, 6)), /already exists/);
    const again = await db.createTable("fruit", rowsOf(0, 1), { existOk: true });
    assert.equal(await again.countRows(), 6);
    await assert.rejects(db.createTable("fruit", [{ other: 1 }], { existOk: true }), /other/);
    assert.equal(await again.countRows(), 6);
    const replaced = await db.createTable("other", rowsOf(0, 3));
    assert.equal(await replaced.countRows(), 3);
    assert.equal(await (await db.createTable("other", rowsOf(0, 1), { mode: "overwrite" })).countRows(), 1);
    const schema = new Schema([new Field("id", new Int32(), true)]);
    assert.equal(await (await db.createEmptyTable("empty", schema)).countRows(), 0);
    assert.deepEqual(await db.tableNames(), ["empty", "fruit", "other"]);
    assert.deepEqual(await db.tableNames({ startAfter: "empty", limit: 1 }), ["fruit"]);
    assert.deepEqual((await db.listTables()).tables, ["empty", "fruit", "other"]);
    await assert.rejects(db.openTable("missing"), /not found/);
    fruit = await (await connected()).openTable("fruit");
    assert.equal(fruit.name, "fruit");
    assert.equal(await fruit.version(), 1);
    const fields = (await fruit.schema()).fields.map(({ name, type }) => `${name}: ${type}`);
    assert.deepEqual(fields, ["id: Float64", "text: Utf8", "vector: FixedSizeList[4]<Float32>"]);
  });

  it("reads types with their units and zones", async () => {
    const at = vectorFromArray([1, 2], new TimestampMicrosecond("UTC"));
    const many = vectorFromArray([1n, 2n], new Int64());
    const table = await db.createTable("typed", new ArrowTable({ at, many }));
    const types = (await table.schema()).fields.map(({ type }) => String(type));
    assert.deepEqual(types, ["Timestamp<MICROSECOND, UTC>", "Int64"]);
    assert.equal(await table.countRows("at > timestamp '1970-01-01 00:00:00.001'"), 1);
  });

  it("counts, adds and refuses what does not fit", async () => {
    assert.equal(await fruit.countRows("id > 2"), 3);
    await assert.rejects(fruit.countRows("id >"), /400/);
    assert.equal((await fruit.add(rowsOf(6, 8))).version, 2);
    assert.equal(await fruit.countRows(), 8);
    const other = await db.openTable("other");
    assert.equal((await other.add(rowsOf(0, 2), { mode: "overwrite" })).version, 3);
    assert.equal(await other.countRows(), 2);
  });

  it("searches vectors and scans", async () => {
    const search = () => fruit.vectorSearch(near);
    assert.deepEqual(idsOf(await search().limit(2).toArray()), [2, 3]);
    assert.deepEqual(idsOf(await search().where("id > 3").limit(1).toArray()), [4]);
    assert.deepEqual(idsOf(await search().where("id > 3").postfilter().limit(1).toArray()), []);
    assert.deepEqual(idsOf(await search().distanceType("dot").limit(1).toArray()), [7]);
    assert.deepEqual(idsOf(await search().distanceRange(0.5, 2).limit(5).toArray()), [3, 1]);
    assert.deepEqual(idsOf(await search().limit(1).offset(1).toArray()), [3]);
    const [row] = await search().select(["id"]).withRowId().limit(1).toArray();
    assert.deepEqual(Object.keys(row.toJSON()).sort(), ["_distance", "_rowid", "id"]);
    const both = await search().addQueryVector([5, 0, 0, 1]).limit(1).toArray();
    assert.deepEqual(idsOf(both).sort(), [2, 5]);
    assert.equal((await fruit.query().toArray()).length, 8);
    assert.deepEqual(idsOf(await fruit.query().where("id >= 6").toArray()).sort(), [6, 7]);
    const [double] = await fruit.query().select({ double: "id * 2" }).where("id = 3").toArray();
    assert.equal(double.double, 6);
    await assert.rejects(fruit.query().select(["nope"]).toArray(), /nope/);
    assert.match(await search().limit(2).explainPlan(true), /KNN/);
    assert.match(await search().limit(2).analyzePlan(), /metrics/);
  });

  it("merges, updates and deletes", async () => {
    const merged = await fruit
      .mergeInsert("id")
      .whenMatchedUpdateAll()
      .whenNotMatchedInsertAll()
      .execute(rowsOf(7, 9));
    assert.equal(merged.numUpdatedRows, 1);
    assert.equal(merged.numInsertedRows, 1);
    const pruned = await fruit
      .mergeInsert("id")
      .whenNotMatchedInsertAll()
      .whenNotMatchedBySourceDelete({ where: "id = 8" })
      .execute(rowsOf(7, 8));
    assert.equal(pruned.numDeletedRows, 1);
    const updated = await fruit.update({ where: "id = 7", values: { text: "it's new" } });
    assert.equal(updated.rowsUpdated, 1);
    assert.equal((await fruit.update({ where: "id = 6", valuesSql: { id: "id + 100" } })).rowsUpdated, 1);
    assert.equal((await fruit.delete("id > 6")).numDeletedRows, 2);
    assert.equal(await fruit.countRows(), 6);
    const stats = await fruit.stats();
    assert.equal(stats.numRows, 6);
    assert.ok(stats.fragmentStats.numFragments > 0);
  });

  it("adds, alters and drops columns", async () => {
    assert.ok((await fruit.addColumns([{ name: "twice", valueSql: "id * 2" }])).version > 0);
    assert.equal((await fruit.query().where("id = 3").toArray())[0].twice, 6);
    const nulls = [
      { name: "note", valueSql: "cast(null as string)" },
      { name: "score", valueSql: "cast(null as float)" },
    ];
    assert.ok((await fruit.addColumns(nulls)).version > 0);
    assert.equal((await fruit.query().limit(1).toArray())[0].score, null);
    assert.ok((await fruit.alterColumns([{ path: "note", rename: "remark" }])).version > 0);
    assert.ok((await fruit.alterColumns([{ path: "score", dataType: "double" }])).version > 0);
    assert.ok((await fruit.dropColumns(["remark", "twice"])).version > 0);
    await assert.rejects(fruit.dropColumns(["nope"]), /nope/);
    const fields = (await fruit.schema()).fields.map(({ name, type }) => `${name}: ${type}`);
    assert.equal(fields.at(-1), "score: Float64");
    await fruit.updateFieldMetadata([{ path: "text", metadata: { language: "en" } }]);
    const [, text] = (await fruit.schema()).fields;
    assert.deepEqual([...(text?.metadata ?? [])], [["language", "en"]]);
  });

  it("builds indices and searches with them", async () => {
    const big = await db.createTable("big", rowsOf(0, 600));
    const waitTimeoutSeconds = 60;
    await big.createIndex("id", { config: Index.btree(), waitTimeoutSeconds });
    await big.createIndex("text", { config: Index.fts({ withPosition: true }), waitTimeoutSeconds });
    const config = Index.ivfPq({ numPartitions: 2, numSubVectors: 2, distanceType: "l2" });
    await big.createIndex("vector", { config, waitTimeoutSeconds });
    await big.waitForIndex(["id_idx", "text_idx", "vector_idx"], waitTimeoutSeconds);
    const indices = (await big.listIndices()).map(({ name, columns }) => [name, ...columns]);
    const wanted = ["id", "text", "vector"].map((column) => [`${column}_idx`, column]);
    assert.deepEqual(indices.sort(), wanted);
    const stats = await big.indexStats("id_idx");
    assert.equal(stats?.numIndexedRows, 600);
    assert.equal(stats?.numUnindexedRows, 0);
    assert.equal(await big.indexStats("nope"), undefined);
    const nearest = big.vectorSearch([42.1, 0, 0, 1]).nprobes(2).refineFactor(10).limit(1);
    assert.deepEqual(idsOf(await nearest.toArray()), [42]);
    assert.deepEqual(textsOf(await big.search("plum", "fts").limit(9).toArray()), ["blue plum"]);
    const fuzzy = new MatchQuery("plim", "text", { fuzziness: 1 });
    assert.deepEqual(textsOf(await big.search(fuzzy).limit(9).toArray()), ["blue plum"]);
    const hybrid = big.query().fullTextSearch("plum").nearestTo([3, 0, 0, 1]).refineFactor(10);
    const reranked = hybrid.rerank(await rerankers.RRFReranker.create()).limit(1);
    assert.deepEqual(textsOf(await reranked.toArray()), ["blue plum"]);
    const job = await big.createIndexAsync("id", { config: Index.btree() });
    await job.wait();
    const again = await (await connected()).openJob(job.id as string);
    assert.equal(await again.status(), "finished");
    await big.prewarmIndex("id_idx");
    await big.dropIndex("id_idx");
    assert.equal((await big.listIndices()).length, 2);
    await assert.rejects(big.dropIndex("id_idx"), /id_idx/);
  });

  it("keeps versions, tags and branches", async () => {
    const newest = await fruit.version();
    const versions = (await fruit.listVersions()).map(({ version }) => version);
    assert.ok(versions.includes(1) && versions.includes(newest), `${versions}`);
    const tags = await fruit.tags();
    await tags.create("first", 1);
    await assert.rejects(tags.create("first", 1), /already exists/);
    assert.equal((await tags.list())["first"]?.version, 1);
    assert.equal(await tags.getVersion("first"), 1);
    await tags.update("first", 2);
    await fruit.checkout("first");
    assert.equal(await fruit.countRows(), 8);
    await fruit.checkout(1);
    assert.equal(await fruit.countRows(), 6);
    await fruit.restore();
    assert.equal(await fruit.version(), newest + 1);
    await fruit.restore();
    assert.equal(await fruit.countRows(), 6);
    await assert.rejects(fruit.checkout(9999), /9999/);
    await tags.delete("first");
    assert.deepEqual(await tags.list(), {});
    const branches = await fruit.branches();
    const trial = await branches.create("trial");
    await trial.add(rowsOf(50, 51));
    assert.deepEqual([await trial.countRows(), await fruit.countRows()], [7, 6]);
    assert.deepEqual(Object.keys(await branches.list()), ["trial"]);
    assert.equal(await (await branches.checkout("trial")).countRows(), 7);
    await branches.delete("trial");
    assert.deepEqual(await branches.list(), {});
  });

  it("works in namespaces, renames and drops", async () => {
    await db.createNamespace(["team"], { properties: { owner: "ada" } });
    await assert.rejects(db.createNamespace(["team"]), /team/);
    await db.createNamespace(["team"], { mode: "exist_ok" });
    assert.deepEqual((await db.listNamespaces()).namespaces, ["team"]);
    assert.deepEqual((await db.describeNamespace(["team"])).properties, { owner: "ada" });
    const inner = await db.createTable("inner", rowsOf(0, 2), ["team"]);
    assert.equal(await inner.countRows(), 2);
    assert.deepEqual(await db.tableNames(["team"]), ["inner"]);
    await db.renameTable("other", "full", { newNamespacePath: ["team"] });
    assert.equal(await (await (await connected()).openTable("full", ["team"])).countRows(), 2);
    await assert.rejects(db.renameTable("big", "fruit"), /exists/);
    await assert.rejects(db.dropNamespace(["team"]), /team/);
    await db.dropNamespace(["team"], { behavior: "cascade" });
    await db.dropNamespace(["team"], { mode: "skip" });
    for (const name of await db.tableNames()) await db.dropTable(name);
    assert.deepEqual(await db.tableNames(), []);
    await assert.rejects((await connected()).openTable("fruit"), /not found/);
    client.end();
  });
});
