import assert from "node:assert/strict";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../test/fixtures/dir/directory-backend.ts";
import { openDirectory } from "../open-directory.ts";

const many = (count: number, prefix = "k") =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, "v"]));

test("every operation refuses too many properties for an object, and properties that are too long", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  const rows = tableToIPC(new Table({ id: vectorFromArray([1], new Int32()) }), "stream");
  for (const properties of [many(1_001), { long: "x".repeat(64 * 1024) }]) {
    await assert.rejects(client.call("createNamespace", "n", { properties }), failsWith("InvalidInput"));
    await assert.rejects(client.call("declareTable", "t", { properties }), failsWith("InvalidInput"));
    await assert.rejects(
      client.call("registerTable", "t", { location: "t.lance", properties }),
      failsWith("InvalidInput"),
    );
    await assert.rejects(client.upload("createTable", "t", { properties }, rows), failsWith("InvalidInput"));
  }
  await client.call("createNamespace", "n", { properties: many(1_000) });
  await client.upload("createTable", "t", { properties: many(600) }, rows);
  const updates = [{ column: "id", expression: "2" }];
  const tooMany = client.call("updateTable", "t", { updates, properties: many(600, "more") });
  await assert.rejects(tooMany, failsWith("InvalidInput"));
  await client.call("updateTable", "t", { updates, properties: many(400, "more") });
});

test("the refusal of large properties names the object, their size and the option", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t), { maxPropertiesBytes: 100 });
  await client.call("createNamespace", "n");
  const properties = { name: "x".repeat(97) };
  for (const refused of [
    () => client.call("declareTable", "n$t", { properties }),
    () => client.call("createNamespace", "n$t", { properties }),
  ])
    await assert.rejects(refused, {
      kind: "InvalidInput",
      message:
        'the properties of "n$t" have 101 bytes in their names and values, more than the 100 of --max-properties-size',
    });
  await client.call("declareTable", "n$t", { properties: { name: "x".repeat(96) } });
});

test("an object with larger properties than the limit can be read, renamed and dropped", async (t) => {
  const root = await temporaryDirectory(t);
  const properties = { name: "x".repeat(200) };
  const before = await openClient(t, root);
  await before.call("declareTable", "t", { properties });
  await before.close();
  const client = await openClient(t, root, { maxPropertiesBytes: 100 });
  await client.call("renameTable", "t", { newTableName: "u" });
  assert.deepEqual((await client.call("describeTable", "u")).properties, properties);
  await client.call("dropTable", "u");
});

test("a catalog whose properties are at their limit refuses more, and goes on otherwise", async (t) => {
  const root = await temporaryDirectory(t);
  const properties = { name: "x".repeat(400) };
  const before = await openClient(t, root);
  for (const name of ["a", "b"]) await before.call("declareTable", name, { properties });
  await before.close();
  const client = await openClient(t, root, { maxCatalogPropertiesBytes: 600 });
  for (const refused of [
    () => client.call("declareTable", "c", { properties }),
    () => client.call("createNamespace", "c", { properties: { a: "b" } }),
  ])
    await assert.rejects(refused, (error: Error) => {
      assert.match(error.message, /have 822 bytes, and \d+ more exceed the 600 of --max-catalog-properties/);
      return failsWith("PayloadTooLarge")(error);
    });
  await client.call("createNamespace", "c");
  assert.deepEqual((await client.call("describeTable", "a")).properties, properties);
  await client.call("renameTable", "a", { newTableName: "d" });
  await client.call("dropTable", "d");
  await client.call("dropTable", "b");
  await client.call("declareTable", "a", { properties });
  await assert.rejects(client.call("declareTable", "b", { properties }), failsWith("PayloadTooLarge"));
});

test("250 declarations with a megabyte of properties are refused and leave the catalog as small as it was", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.call("declareTable", "t");
  const properties = { name: "x".repeat(1_000_000) };
  for (let at = 0; at < 250; at++)
    await assert.rejects(client.call("declareTable", `t${at}`, { properties }), failsWith("InvalidInput"));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const { size, bytes, propertiesBytes } = await context.catalog.read();
  assert.deepEqual([size, propertiesBytes], [1, 0]);
  assert.ok(bytes < 1_000_000);
});

test("a write that a full catalog refuses changes no rows and leaves no table", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t), { maxCatalogPropertiesBytes: 100 });
  const rows = tableToIPC(new Table({ id: vectorFromArray([1], new Int32()) }), "stream");
  await client.upload("createTable", "t", {}, rows);
  const properties = { name: "x".repeat(200) };
  const update = { updates: [{ column: "id", expression: "2" }], properties };
  await assert.rejects(client.call("updateTable", "t", update), failsWith("PayloadTooLarge"));
  assert.equal((await client.call("listTableVersions", "t")).versions.length, 1);
  await assert.rejects(client.upload("createTable", "u", { properties }, rows), failsWith("PayloadTooLarge"));
  await client.upload("createTable", "u", {}, rows);
});
