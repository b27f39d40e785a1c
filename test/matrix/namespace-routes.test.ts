import assert from "node:assert/strict";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import type { Gateway } from "../../src/gateway/compose.ts";
import { people, personStream } from "../support/arrow.ts";
import type { LanceClient, ProtocolClient } from "../support/client.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { refused } from "../support/expect.ts";
import { createProtocolClients } from "../support/protocols.ts";
import { serveDatabases } from "../support/serve-databases.ts";

const LIMITS = { maxUploadBytes: 2 ** 26 };
const OPTIONS = { ...LIMITS, host: "127.0.0.1", port: 0, maxMessageBytes: 2 ** 24, drainSeconds: 0 };

describe("databases as the first names of identifiers", () => {
  let directory: { path: string; remove(): Promise<void> };
  let gateway: Gateway;
  let clients: Readonly<Record<string, ProtocolClient>>;
  beforeAll(async () => {
    directory = await temporaryDirectory();
    const log = pino({ level: "silent" });
    const open = async (name: string) => {
      const backend = await createDirectoryBackend({ root: `${directory.path}/${name}`, log });
      return [name, { backend, limits: LIMITS }] as const;
    };
    const databases = new Map([await open("sales"), await open("events")]);
    const routing = { routes: [{ by: "namespace" }], pathPrefix: undefined, fallback: undefined } as const;
    gateway = await serveDatabases(databases, routing, OPTIONS, { log });
    clients = createProtocolClients(gateway.address.port);
  });
  afterAll(async () => {
    for (const { close } of Object.values(clients)) close();
    await gateway.close();
    await directory.remove();
  });

  async function onEach(run: (client: LanceClient, ns: string) => Promise<void>): Promise<void> {
    for (const [index, protocol] of ["gRPC", "Connect", "REST"].entries()) {
      await run((clients[protocol] as ProtocolClient).client, `ns${index}`);
    }
  }

  test("the root lists the databases and contains nothing else", async () => {
    await onEach(async (client) => {
      const first = await client.listNamespaces({ limit: 1 });
      assert.deepEqual([first.namespaces, first.pageToken], [["events"], "events"]);
      const rest = await client.listNamespaces({ pageToken: first.pageToken ?? "" });
      assert.deepEqual([rest.namespaces, rest.pageToken || undefined], [["sales"], undefined]);
      assert.deepEqual((await client.listTables()).tables, []);
      await client.namespaceExists();
      await refused("NamespaceAlreadyExists", client.createNamespace({ id: ["sales"] }));
      await refused("Unsupported", client.createNamespace({ id: ["new"] }));
      await refused("Unsupported", client.dropNamespace({ id: ["sales"] }));
      await refused("Unsupported", client.listAllTables());
    });
  });

  test("a call on a table reaches its database, and answers have the table's whole name", async () => {
    await onEach(async (client, ns) => {
      const parent = ["sales", ns];
      const id = [...parent, "t"];
      await client.createNamespace({ id: parent });
      await client.createTable({ id }, personStream(people(3)));
      await client.insertIntoTable({ id }, personStream(people(2)));
      assert.equal((await client.countTableRows({ id })).count, 5n);
      assert.ok((await client.queryTable({ id, k: 10n })).bytes.length > 0);
      const { table, namespace } = await client.describeTable({ id, loadDetailedMetadata: true });
      assert.deepEqual([table, namespace], ["t", parent]);
      await refused("TableNotFound", client.describeTable({ id: ["sales", "t"] }));
      await client.renameTable({ id, newTableName: "u", newNamespaceId: parent });
      assert.deepEqual((await client.listTables({ id: parent })).tables, ["u"]);
      await refused(
        "InvalidInput",
        client.renameTable({ id: [...parent, "u"], newTableName: "v", newNamespaceId: ["events"] }),
      );
      assert.deepEqual((await client.dropTable({ id: [...parent, "u"] })).id, [...parent, "u"]);
      assert.deepEqual((await client.listNamespaces({ id: ["events"] })).namespaces, []);
    });
  });

  test("a commit of several tables is limited to one database", async () => {
    await onEach(async (client, ns) => {
      const parent = ["sales", `${ns}-commit`];
      await client.createNamespace({ id: parent });
      const declare = (id: string[]) => ({ operation: { case: "declareTable" as const, value: { id } } });
      const operations = [declare([...parent, "a"]), declare([...parent, "b"])];
      await client.batchCommitTables({ operations });
      assert.deepEqual((await client.listTables({ id: parent })).tables, ["a", "b"]);
      const mixed = [declare([...parent, "c"]), declare(["events", "d"])];
      await refused("InvalidInput", client.batchCommitTables({ operations: mixed }));
      assert.deepEqual((await client.listTables({ id: ["events"] })).tables, []);
    });
  });
});
