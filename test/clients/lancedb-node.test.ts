import assert from "node:assert/strict";
import { type Connection, connectNamespace, Index, type Table } from "@lancedb/lancedb";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { installedVersion } from "./support/installed.ts";
import { watchClient } from "./support/session.ts";

const people = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => ({ id: from + i, name: `p${from + i}`, vector: [from + i, 0] }));

const idsOf = (rows: { id: number }[]) => rows.map(({ id }) => id).sort((a, b) => a - b);

describe("@lancedb/lancedb over a REST namespace", () => {
  const client = watchClient("@lancedb/lancedb (Node, namespace)", installedVersion("@lancedb/lancedb"));
  let gateway: GatewayProcess;
  let db: Connection;
  let table: Table;
  beforeAll(async () => {
    gateway = await startGateway();
    db = client.watch(await connectNamespace("rest", { uri: gateway.uri }));
  });
  afterAll(async () => {
    db.close();
    await gateway.close();
  });

  it("works in namespaces", async () => {
    await db.createNamespace(["team"], { properties: { owner: "ada" } });
    await assert.rejects(db.createNamespace(["team"]), /team/);
    await db.createNamespace(["team", "inner"]);
    assert.deepEqual((await db.listNamespaces()).namespaces, ["team"]);
    assert.deepEqual((await db.listNamespaces(["team"])).namespaces, ["inner"]);
    assert.deepEqual((await db.describeNamespace(["team"])).properties, { owner: "ada" });
    await db.dropNamespace(["team", "inner"]);
    assert.deepEqual((await db.listNamespaces(["team"])).namespaces ?? [], []);
  });

  it("creates, lists and opens tables", async () => {
    table = await db.createTable("people", people(1, 3), ["team"]);
    assert.equal(await table.countRows(), 3);
    await assert.rejects(db.createTable("people", people(1, 3), ["team"]), /exists/);
    await db.createTable("other", people(1, 1), ["team"]);
    const replaced = await db.createTable("other", people(1, 2), ["team"], { mode: "overwrite" });
    assert.equal(await replaced.countRows(), 2);
    assert.deepEqual(await db.tableNames(["team"]), ["other", "people"]);
    assert.deepEqual(await db.tableNames(["team"], { limit: 1 }), ["other"]);
    await db.createTable("at_root", people(1, 1));
    assert.deepEqual(await db.tableNames(), ["at_root"]);
    await assert.rejects(db.openTable("missing", ["team"]), /not found/i);
    table = await db.openTable("people", ["team"]);
    assert.deepEqual(
      (await table.schema()).fields.map(({ name }) => name),
      ["id", "name", "vector"],
    );
  });

  it("adds, updates, merges and deletes rows", async () => {
    await table.add(people(10, 2));
    assert.equal(await table.countRows(), 5);
    assert.equal(await table.countRows("id >= 10"), 2);
    await assert.rejects(table.countRows("id >"));
    const merge = table.mergeInsert("id").whenMatchedUpdateAll().whenNotMatchedInsertAll();
    const merged = await merge.execute(people(11, 2));
    assert.deepEqual([merged.numUpdatedRows, merged.numInsertedRows], [1, 1]);
    assert.equal((await table.update({ where: "id = 1", values: { name: "Ada" } })).rowsUpdated, 1);
    await table.delete("id = 12");
    assert.equal(await table.countRows(), 5);
    assert.equal(await (await db.openTable("people", ["team"])).countRows("name = 'Ada'"), 1);
  });

  it("searches and scans", async () => {
    const [nearest] = await table.vectorSearch([1.1, 0]).limit(1).toArray();
    assert.equal(nearest.name, "Ada");
    assert.deepEqual(idsOf(await table.vectorSearch([10.1, 0]).where("id < 10").limit(1).toArray()), [3]);
    assert.deepEqual(idsOf(await table.query().where("id >= 10").toArray()), [10, 11]);
    const [selected] = await table.query().select({ double: "id * 2" }).where("id = 3").toArray();
    assert.equal(selected.double, 6);
    assert.match(await table.vectorSearch([1, 0]).limit(1).explainPlan(), /KNN/);
  });

  it("builds and drops indices", async () => {
    await table.createIndex("id", { config: Index.btree() });
    await table.createIndex("name", { config: Index.fts() });
    const names = (await table.listIndices()).map(({ name }) => name).sort();
    assert.deepEqual(names, ["id_idx", "name_idx"]);
    assert.equal((await table.indexStats("id_idx"))?.numIndexedRows, 5);
    assert.deepEqual(idsOf(await table.search("ada", "fts", "name").limit(5).toArray()), [1]);
    await table.dropIndex("id_idx");
    assert.equal((await table.listIndices()).length, 1);
  });

  it("changes columns", async () => {
    await table.addColumns([{ name: "twice", valueSql: "id * 2" }]);
    assert.equal(await table.countRows("twice = id * 2"), 5);
    await table.alterColumns([{ path: "twice", rename: "double" }]);
    await table.dropColumns(["double"]);
    assert.deepEqual(
      (await table.schema()).fields.map(({ name }) => name),
      ["id", "name", "vector"],
    );
  });

  it("keeps versions and tags", async () => {
    const newest = await table.version();
    assert.equal((await table.listVersions()).length, newest);
    const tags = await table.tags();
    await tags.create("first", 1);
    assert.equal(await tags.getVersion("first"), 1);
    await tags.delete("first");
    await table.checkout(1);
    assert.equal(await table.countRows(), 3);
    await table.restore();
    assert.equal(await table.version(), newest + 1);
  });

  it("drops tables and namespaces", async () => {
    await db.dropTable("people", ["team"]);
    await assert.rejects(db.openTable("people", ["team"]), /not found/i);
    await assert.rejects(db.dropNamespace(["team"]), /team/);
    await db.dropTable("other", ["team"]);
    await db.dropNamespace(["team"]);
    await db.dropTable("at_root");
    assert.deepEqual(await db.tableNames(), []);
    client.end();
  });
});
