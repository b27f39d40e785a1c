import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import { drawKey, type KeyRecord } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { errorEntry } from "../../src/namespace/errors.ts";
import type { Operation } from "../../src/namespace/lance-namespace.ts";
import { people, personStream } from "../support/arrow.ts";
import { CallError, type LanceClient, type ProtocolClient } from "../support/client.ts";
import { ALL_OPERATIONS, callBare } from "../support/operations.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

/** Operations that may reach objects which their request does not name as the object of the call. */
const REACHING: ReadonlySet<Operation> = new Set<Operation>([
  ...(["listAllTables", "registerTable", "explainTableQueryPlan"] as const),
  ...(["createMaterializedView", "refreshMaterializedView", "alterTableBackfillColumns"] as const),
  ...(["createTableVersion", "batchCreateTableVersions", "batchCommitTables"] as const),
  ...(["describeTransaction", "alterTransaction"] as const),
]);

const [whole, scoped] = [drawKey(), drawKey()];
const facts = { role: "owner", hash: "", created: "2026-01-01T00:00:00.000Z" } as const;
const records: readonly KeyRecord[] = [
  { ...facts, id: whole.id, name: "whole" },
  { ...facts, id: scoped.id, name: "scoped", groups: ["data"], scope: ["team", "lake$raw"] },
];
const ring = {
  find: (text: string) => records[[whole.text, scoped.text].indexOf(text)] ?? ("unknown" as const),
  close() {},
};

async function isForbidden(call: Promise<unknown>): Promise<boolean> {
  return call.then(
    () => false,
    (error: unknown) => {
      assert.ok(error instanceof CallError, String(error));
      return error.failure.code === errorEntry("PermissionDenied").code;
    },
  );
}

describe("a key that is restricted to objects", () => {
  let server: DirectoryServer;
  let clients: Readonly<Record<string, ProtocolClient>>;
  beforeAll(async () => {
    const authenticator = createAuthenticator([proveByKeys(ring)], { failed: () => 0 });
    server = await startDirectoryServer({}, { authenticator });
    clients = createProtocolClients(server.port, { "x-api-key": scoped.text });
    const { gRPC } = createProtocolClients(server.port, { "x-api-key": whole.text });
    for (const id of [["team"], ["teams"], ["lake"], ["lake", "raw"]])
      await gRPC?.client.createNamespace({ id });
    for (const id of [
      ["team", "people"],
      ["teams", "people"],
    ])
      await gRPC?.client.createTable({ id }, personStream(people(2)));
    gRPC?.close();
  });
  afterAll(async () => {
    for (const { close } of Object.values(clients)) close();
    await server.close();
  });
  const clientOf = (protocol: string) => clients[protocol]?.client as LanceClient;

  for (const protocol of Object.keys(PROTOCOLS)) {
    test(`${protocol}: is refused every operation on any other object`, async () => {
      for (const id of [["teams", "missing"], ["lake", "other"], ["lake"]]) {
        for (const operation of ALL_OPERATIONS)
          assert.ok(await isForbidden(callBare(clientOf(protocol), operation, id)), `${operation} on ${id}`);
      }
    });

    test(`${protocol}: serves for its own objects, except by operations that may reach others`, async () => {
      for (const operation of ALL_OPERATIONS) {
        const forbidden = await isForbidden(
          callBare(clientOf(protocol), operation, ["team", "missing", "t"]),
        );
        assert.equal(forbidden, REACHING.has(operation), operation);
      }
    });
  }

  test("reads and lists below its objects", async () => {
    const client = clientOf("REST");
    assert.deepEqual((await client.listTables({ id: ["team"] })).tables, ["people"]);
    assert.equal((await client.countTableRows({ id: ["team", "people"] })).count, 2n);
    await client.describeNamespace({ id: ["lake", "raw"] });
    assert.ok(await isForbidden(client.listNamespaces({ id: [] })));
  });

  test("renames within its objects only", async () => {
    const client = clientOf("gRPC");
    const rename = (newNamespaceId: string[]) =>
      client.renameTable({ id: ["team", "people"], newNamespaceId, newTableName: "persons" });
    assert.ok(await isForbidden(rename(["teams"])));
    assert.ok(await isForbidden(rename(["lake"])));
    await rename([]);
    assert.ok(await client.describeTable({ id: ["team", "persons"] }));
  });

  test("names no location, which may be that of another table", async () => {
    const { tables } = await clientOf("gRPC").listTables({ id: ["team"] });
    assert.equal(tables.length, 1);
    const location = `${server.base}/teams$people.lance`;
    assert.ok(await isForbidden(clientOf("gRPC").declareTable({ id: ["team", "copy"], location })));
  });

  test("is refused a text that names another object than its list", async () => {
    const call = clientOf("gRPC").describeTable({ id: [], identifier: "teams.people", delimiter: "." });
    assert.ok(await isForbidden(call));
  });
});
