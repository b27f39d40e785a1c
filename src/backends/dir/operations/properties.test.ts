import assert from "node:assert/strict";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { failsWith, openClient, temporaryDirectory } from "../test-support.ts";

const many = (count: number, prefix = "k") =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, "v"]));

test("every operation refuses too many properties for an object, and properties that are too long", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  const rows = tableToIPC(new Table({ id: vectorFromArray([1], new Int32()) }), "stream");
  for (const properties of [many(1_001), { long: "x".repeat(1024 * 1024) }]) {
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
