import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Connection, connectNamespace } from "@lancedb/lancedb";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";

const people = [
  { id: 1, name: "Ada", vector: [1, 0] },
  { id: 2, name: "Grace", vector: [2, 0] },
];

describe("@lancedb/lancedb over a REST namespace", () => {
  let gateway: GatewayProcess;
  let db: Connection;
  before(async () => {
    gateway = await startGateway();
    db = await connectNamespace("rest", { uri: gateway.uri });
  });
  after(async () => {
    db.close();
    await gateway.close();
  });

  it("creates, fills, searches and drops a table in a namespace", async () => {
    await db.createNamespace(["team"]);
    const table = await db.createTable("people", people, ["team"]);
    assert.equal(await table.countRows(), 2);
    await table.add([{ id: 3, name: "Edsger", vector: [3, 0] }]);
    const opened = await db.openTable("people", ["team"]);
    assert.equal(await opened.countRows(), 3);
    const [nearest] = await opened.vectorSearch([2.1, 0]).limit(1).toArray();
    assert.equal(nearest.name, "Grace");
    assert.deepEqual(await db.tableNames(["team"]), ["people"]);
    await assert.rejects(db.createTable("people", people, ["team"]), /exists/);
    await db.dropTable("people", ["team"]);
    await assert.rejects(db.openTable("people", ["team"]), /not found/i);
    await db.dropNamespace(["team"]);
  });
});
