import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import type { ChangeEvent } from "../../src/namespace/change-event.ts";
import { people, personStream } from "../support/arrow.ts";
import type { LanceClient, ProtocolClient } from "../support/client.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

describe("the events of changes", () => {
  const events: ChangeEvent[] = [];
  let server: DirectoryServer;
  let clients: Readonly<Record<string, ProtocolClient>>;
  beforeAll(async () => {
    const sink = { announce: async (all: readonly ChangeEvent[]) => void events.push(...all) };
    server = await startDirectoryServer({}, { announcements: { sink, source: "/test" } });
    clients = createProtocolClients(server.port);
  });
  afterAll(async () => {
    for (const { close } of Object.values(clients)) close();
    await server.close();
  });

  for (const protocol of Object.keys(PROTOCOLS)) {
    test(`${protocol}: say the same of the same calls, and nothing of reads and failures`, async () => {
      const before = events.length;
      const client = clients[protocol]?.client as LanceClient;
      const id = ["n", "t"];
      await client.createNamespace({ id: ["n"] });
      await client.createTable({ id }, personStream(people(3)));
      await client.insertIntoTable({ id }, personStream(people(2)));
      await client.deleteFromTable({ id, predicate: "id = 1" });
      await client.countTableRows({ id });
      await assert.rejects(client.dropTable({ id: ["n", "missing"] }));
      await client.createTableTag({ id, tag: "v", version: 1n });
      await client.renameTable({ id, newTableName: "u" });
      await client.dropTable({ id: ["n", "u"] });
      await client.dropNamespace({ id: ["n"] });
      const own = events.slice(before);
      assert.deepEqual(
        own.map(({ type, subject, data }) =>
          [type.replace("lance.gateway.", ""), subject, data.version, data.to].filter(Boolean).join(" "),
        ),
        [
          "namespace.created n",
          "table.created n$t 1",
          "table.data_changed n$t 2",
          "table.data_changed n$t 3",
          "table.tags_changed n$t",
          "table.renamed n$t n$u",
          "table.dropped n$u",
          "namespace.dropped n",
        ],
      );
      assert.equal(new Set(own.map(({ id: each }) => each)).size, own.length);
    });
  }
});
