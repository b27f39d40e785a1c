import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import { checkForeignToken, checkPaging } from "../contract/world.ts";
import type { LanceClient, ProtocolClient } from "../support/client.ts";
import { jsonOf, sendHttp } from "../support/http.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

const NAMES = ["a", "B", "a.b", "a-b", "z", "10", "9"];

describe("pages over the wires", () => {
  let server: DirectoryServer;
  let clients: Readonly<Record<string, ProtocolClient>>;
  beforeAll(async () => {
    server = await startDirectoryServer();
    clients = createProtocolClients(server.port);
    const { client } = clients["gRPC"] as ProtocolClient;
    await client.createNamespace({ id: ["ns"] });
    for (const name of NAMES) {
      await client.createNamespace({ id: ["ns", `n-${name}`] });
      await client.declareTable({ id: ["ns", name] });
      await client.declareTable({ id: [name] });
    }
  });
  afterAll(async () => {
    for (const { close } of Object.values(clients)) close();
    await server.close();
  });

  type Options = { limit: number; pageToken?: string };
  const listings = {
    ListTables: async (client: LanceClient, options: Options) => {
      const { tables, pageToken } = await client.listTables({ id: ["ns"], ...options });
      return { names: tables, pageToken };
    },
    ListNamespaces: async (client: LanceClient, options: Options) => {
      const { namespaces, pageToken } = await client.listNamespaces({ id: ["ns"], ...options });
      return { names: namespaces.map((name) => name.replace("n-", "")), pageToken };
    },
    ListAllTables: async (client: LanceClient, options: Options) => {
      const { tables, pageToken } = await client.listAllTables(options);
      return { names: tables.filter((name) => !name.includes("$")), pageToken };
    },
  };
  for (const [operation, list] of Object.entries(listings)) {
    for (const protocol of Object.keys(PROTOCOLS)) {
      test(`${protocol}: ${operation} lists everything once with pages of any size`, async () => {
        const { client } = clients[protocol] as ProtocolClient;
        await checkPaging(NAMES, (options) => list(client, options));
        await checkForeignToken(NAMES.length, (options) => list(client, options));
      });
    }
  }

  test("a token of one wire continues a listing on another", async () => {
    const first = await (clients["gRPC"] as ProtocolClient).client.listTables({ id: ["ns"], limit: 3 });
    const pageToken = first.pageToken as string;
    for (const { client } of Object.values(clients)) {
      const { tables } = await client.listTables({ id: ["ns"], pageToken, limit: 99 });
      assert.deepEqual([...first.tables, ...tables].sort(), NAMES.toSorted());
    }
  });

  test("REST: the last page has no token, an empty token is the first page", async () => {
    const page = async (query: string) =>
      await sendHttp(server.port, { method: "GET", path: `/v1/namespace/ns/table/list?${query}` });
    const all = jsonOf(await page("page_token="));
    assert.deepEqual((all["tables"] as string[]).toSorted(), NAMES.toSorted());
    assert.ok(!all["page_token"]);
    assert.ok(jsonOf(await page("limit=1"))["page_token"]);
    for (const query of ["limit=x", "limit=1.5", "limit=", "limit=99999999999", "include_declared=maybe"]) {
      const answer = await page(query);
      assert.equal(answer.status, 400, query);
      assert.equal(jsonOf(answer)["code"], 13);
    }
  });
});
