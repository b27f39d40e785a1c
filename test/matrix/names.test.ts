import assert from "node:assert/strict";
import fc from "fast-check";
import { afterAll, beforeAll, describe, test } from "vitest";
import { isNewName } from "../../src/namespace/identifier.ts";
import { people, personStream } from "../support/arrow.ts";
import { codePoint } from "../support/characters.ts";
import type { ProtocolClient } from "../support/client.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

/** Characters that paths, queries, escapes and file systems treat in their own ways, and any others. */
const character = fc.oneof(
  fc.constantFrom(..." %+.:;#&=~!'\"()[]{}<>|^`,@-_", "%20", "%2f", "%25", "ä", "e\u0301", "日", "\u{1f600}"),
  codePoint,
);
const newName = fc.string({ unit: character, minLength: 1, maxLength: 8 }).filter(isNewName);

describe("names on every wire", () => {
  let server: DirectoryServer;
  let clients: Readonly<Record<string, ProtocolClient>>;
  beforeAll(async () => {
    server = await startDirectoryServer({}, {}, "unicode");
    clients = createProtocolClients(server.port);
  });
  afterAll(async () => {
    for (const { close } of Object.values(clients)) close();
    await server.close();
  });

  test("a name that one wire creates reaches the same object on all, as a list and as a string", async () => {
    const protocols = fc.constantFrom(...Object.keys(PROTOCOLS));
    const created = new Set<string>();
    const roundTrip = fc.asyncProperty(newName, newName, protocols, async (namespace, name, creator) => {
      if (created.has(namespace)) return;
      created.add(namespace);
      const id = [namespace, name];
      const identifier = id.join("$");
      const { client: first } = clients[creator] as ProtocolClient;
      await first.createNamespace({ id: [namespace], properties: { namespace } });
      await first.createTable({ id }, personStream(people(2)));
      for (const [protocol, { client }] of Object.entries(clients)) {
        const { properties } = await client.describeNamespace({ identifier: namespace });
        assert.deepEqual(properties, { namespace }, protocol);
        assert.deepEqual((await client.listTables({ id: [namespace] })).tables, [name], protocol);
        const described = await client.describeTable({ identifier });
        assert.deepEqual([described.namespace, described.table], [[namespace], name], protocol);
        assert.equal((await client.countTableRows({ id })).count, 2n, protocol);
      }
      const { client: last } = clients["REST"] as ProtocolClient;
      assert.ok((await last.listNamespaces({})).namespaces.includes(namespace));
      await last.dropTable({ identifier });
      assert.deepEqual((await first.listTables({ id: [namespace] })).tables, []);
    });
    await fc.assert(roundTrip, { numRuns: 60 });
  });
});
