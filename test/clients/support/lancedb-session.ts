import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, Index } from "@lancedb/lancedb";
import { installedVersion } from "./installed.ts";
import { watchClient } from "./session.ts";

const TEXTS = ["red apple", "green apple", "red pear", "blue plum"];

const rowsOf = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => ({
    id: from + i,
    text: TEXTS[(from + i) % TEXTS.length] as string,
    vector: [from + i, 0, 0, 1],
  }));

const idsOf = (rows: { id: number }[]) => rows.map(({ id }) => id);

/**
 * Runs an ordinary session of LanceDB's remote client, with two pauses in it.
 *
 * @returns the number of its calls, all of which had the right result
 */
export async function runLanceDbSession(
  uri: string,
  { pauseMs, renames }: { readonly pauseMs: number; readonly renames: boolean },
): Promise<number> {
  const client = watchClient("@lancedb/lancedb", installedVersion("@lancedb/lancedb"));
  const db = client.watch(await connect("db://shop", { apiKey: "k", hostOverride: uri }));
  assert.deepEqual(await db.tableNames(), []);
  const fruit = await db.createTable("fruit", rowsOf(0, 300));
  await assert.rejects(db.createTable("fruit", rowsOf(0, 1)), /already exists/);
  await db.createTable("fruit", rowsOf(0, 1), { existOk: true });
  await db.createTable("other", rowsOf(0, 3));
  await db.createTable("other", rowsOf(0, 1), { mode: "overwrite" });
  assert.deepEqual(await db.tableNames(), ["fruit", "other"]);
  await assert.rejects(db.openTable("missing"), /not found/);
  assert.equal(await fruit.countRows(), 300);
  assert.equal(await fruit.countRows("id < 3"), 3);
  assert.equal((await fruit.schema()).fields.length, 3);
  assert.equal(await fruit.version(), 1);
  await fruit.add(rowsOf(300, 302));
  await sleep(pauseMs);
  assert.equal(await fruit.countRows(), 302);
  assert.deepEqual(idsOf(await fruit.vectorSearch([2.2, 0, 0, 1]).limit(2).toArray()), [2, 3]);
  assert.deepEqual(idsOf(await fruit.query().where("id >= 300").toArray()).sort(), [300, 301]);
  await assert.rejects(fruit.query().select(["nope"]).toArray(), /nope/);
  assert.match(await fruit.query().limit(2).explainPlan(true), /uri=\S*fruit/);
  const merged = await fruit
    .mergeInsert("id")
    .whenMatchedUpdateAll()
    .whenNotMatchedInsertAll()
    .execute(rowsOf(301, 303));
  assert.deepEqual([merged.numUpdatedRows, merged.numInsertedRows], [1, 1]);
  assert.equal((await fruit.update({ where: "id = 302", values: { text: "new" } })).rowsUpdated, 1);
  await fruit.delete("id >= 301");
  assert.equal((await fruit.stats()).numRows, 301);
  await fruit.addColumns([{ name: "twice", valueSql: "id * 2" }]);
  await fruit.alterColumns([{ path: "twice", rename: "double" }]);
  assert.equal((await fruit.query().where("id = 3").toArray())[0].double, 6);
  await fruit.dropColumns(["double"]);
  const waitTimeoutSeconds = 60;
  await fruit.createIndex("id", { config: Index.btree(), waitTimeoutSeconds });
  await fruit.createIndex("text", { config: Index.fts(), waitTimeoutSeconds });
  assert.equal((await fruit.listIndices()).length, 2);
  assert.equal((await fruit.indexStats("id_idx"))?.numIndexedRows, 301);
  await sleep(pauseMs);
  assert.equal((await fruit.search("plum", "fts").limit(3).toArray()).length, 3);
  await fruit.dropIndex("id_idx");
  assert.ok((await fruit.listVersions()).length > 5);
  const tags = await fruit.tags();
  await tags.create("first", 1);
  assert.equal(await tags.getVersion("first"), 1);
  await fruit.checkout("first");
  assert.equal(await fruit.countRows(), 300);
  await fruit.checkoutLatest();
  await tags.delete("first");
  await fruit.checkout(2);
  await fruit.restore();
  assert.equal(await fruit.countRows(), 302);
  if (renames) {
    await db.renameTable("other", "another");
    assert.deepEqual(await db.tableNames(), ["another", "fruit"]);
  }
  return client.calls();
}
