import assert from "node:assert/strict";
import { create, type DescField, type DescMethod } from "@bufbuild/protobuf";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import { LanceDbService } from "../../src/gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { pathFieldsOf } from "../../src/namespace/operations/method-facts.ts";
import { createTranscoder } from "../../src/transcode/transcoder.ts";
import type { LanceClient, ProtocolClient } from "../support/client.ts";
import { refused } from "../support/expect.ts";
import { jsonOf, sendHttp } from "../support/http.ts";
import { createProtocolClients } from "../support/protocols.ts";
import { type DirectoryServer, fakeBackend, startDirectoryServer, startServer } from "../support/server.ts";

/** Values in messages; a path contains them percent-encoded. */
const DOTS = [".", "..", "...", "%2e%2e", "%2E.", "..;", "..;a=b", "../drop", "a/..", "a\\..\\b"];

/** Spellings in a path. */
const SPELLINGS = [".", "..", "%2e", "%2E%2e", ".%2E", "..;", "..;a=b", "%2e%2e%2fdrop", "..%5Cdrop"];

type AnyCall = (request: object, data?: AsyncIterable<Uint8Array>) => Promise<unknown>;

describe("values of dots alone", () => {
  let server: DirectoryServer;
  let clients: Readonly<Record<string, ProtocolClient>>;
  let client: LanceClient;
  beforeAll(async () => {
    server = await startDirectoryServer();
    clients = createProtocolClients(server.port);
    client = (clients["gRPC"] as ProtocolClient).client;
    await client.createNamespace({ id: ["ns"] });
    await client.declareTable({ id: ["ns", "t"] });
  });
  afterAll(async () => {
    for (const { close } of Object.values(clients)) close();
    await server.close();
  });

  test("are refused in every field that a path carries, on every route of the contract", async () => {
    const { bindings } = createTranscoder([LanceNamespaceService, LanceDbService]);
    const wrong: string[] = [];
    for (const { template, httpMethod } of bindings) {
      for (const { start } of template.variables) {
        for (const spelling of SPELLINGS) {
          const segments = template.segments.map((segment, index) =>
            typeof segment === "object" ? segment.literal : index === start ? spelling : "ns$t",
          );
          const path = `/${segments.join("/")}`;
          const { status } = await sendHttp(server.port, { method: httpMethod, path });
          if (status !== 400) wrong.push(`${httpMethod} ${path}: ${status}`);
        }
      }
    }
    assert.deepEqual(wrong, []);
    await client.tableExists({ id: ["ns", "t"] });
  });

  test("are refused in the fields of messages on every wire", async () => {
    const wrong: string[] = [];
    for (const [protocol, { client: wire }] of Object.entries(clients)) {
      const call = (method: DescMethod, field: DescField, value: string) => {
        const name = field.localName === "identifier" ? "id" : field.localName;
        const request = { id: ["ns", "t"], indexName: "i", [name]: name === "id" ? ["ns", value] : value };
        return (wire as unknown as Record<string, AnyCall>)[method.localName]?.(request);
      };
      for (const method of LanceNamespaceService.methods) {
        if (method.methodKind !== "unary") continue;
        for (const field of pathFieldsOf(method)) {
          for (const value of DOTS) {
            await refused("InvalidInput", call(method, field, value) as Promise<unknown>).catch((error) =>
              wrong.push(`${protocol} ${method.name}.${field.name} ${value}: ${error.message}`),
            );
          }
        }
      }
    }
    assert.deepEqual(wrong, []);
    await client.tableExists({ id: ["ns", "t"] });
  });

  test("are refused in the identifier's text, whatever the delimiter", async () => {
    for (const [identifier, delimiter] of [
      ["ns$..", "$"],
      ["..$t", "$"],
      ["ns/../t", "/"],
      ["ns:..", ":"],
      [".", "."],
      ["%2e%2e", "$"],
    ] as const) {
      await refused("InvalidInput", client.describeTable({ identifier, delimiter }));
    }
  });

  test("are refused as the new name of a table, a branch or a tag", async () => {
    for (const name of [".", "..", "../x"]) {
      const id = ["ns", "t"];
      await refused("InvalidInput", client.renameTable({ id, newTableName: name }));
      await refused("InvalidInput", client.renameTable({ id, newTableName: "u", newNamespaceId: [name] }));
      for (const branch of [name, `a/${name}/b`]) {
        await refused("InvalidInput", client.createTableBranch({ id, name: branch }));
        await refused("InvalidInput", client.deleteTableBranch({ id, name: branch }));
        await refused("InvalidInput", client.listTableVersions({ id, branch }));
        await refused(
          "InvalidInput",
          client.createTableVersion({ id, branch, version: 1n, manifestPath: "x" }),
        );
      }
      await refused("InvalidInput", client.createTableTag({ id, tag: name, version: 1n }));
      await refused("InvalidInput", client.deleteTableTag({ id, tag: name }));
    }
  });

  test("do not turn into another operation on their way through fetch", async () => {
    const address = `http://127.0.0.1:${server.port}`;
    // A careless client that drops the index ".." calls this path, because its URL parser has folded the segments.
    assert.equal(new URL(`${address}/v1/table/ns$t/index/../drop`).pathname, "/v1/table/ns$t/drop");
    const asked: string[] = [];
    const upstream = await startServer(
      fakeBackend({
        async dropTable(_, { id }) {
          asked.push(id.join("$"));
          return create(LanceNamespaceService.method.dropTable.output);
        },
      }),
    );
    const backend = await createRestBackend({
      uri: `http://127.0.0.1:${upstream.port}`,
      log: pino({ level: "silent" }),
    });
    const proxy = await startServer(backend);
    const { client: through } = createProtocolClients(proxy.port)["gRPC"] as ProtocolClient;
    for (const indexName of DOTS) {
      await refused("InvalidInput", through.dropTableIndex({ id: ["ns", "t"], indexName }));
    }
    await refused("InvalidInput", through.dropTable({ id: ["ns", ".."] }));
    assert.deepEqual(asked, []);
    await proxy.close();
    await upstream.close();
  });

  test("have an error that names their field", async () => {
    const answer = await sendHttp(server.port, { path: "/v1/table/ns$t/index/%2e%2e/drop" });
    assert.equal(jsonOf(answer)["code"], 13);
    assert.match(String(jsonOf(answer)["error"]), /index_name.*dots alone/);
  });
});
