import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-node";
import fastify from "fastify";
import { afterAll, beforeAll, describe, test, vi } from "vitest";
import { connect } from "../../src/client/index.ts";
import { lanceGateway } from "../../src/gateway/fastify-plugin.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../../src/namespace/errors.ts";
import { startReceiver } from "../fixtures/events.ts";
import { rawConnection } from "../fixtures/server/server.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { copyExample } from "../support/examples.ts";
import { NODE } from "../support/node-command.ts";
import { fakeBackend } from "../support/server.ts";
import { until } from "../support/until.ts";
import { webhookTo } from "../support/webhook.ts";

const TOKEN = "a token of the application";
const { listNamespaces } = LanceNamespaceService.method;

async function namesByGrpcWeb(baseUrl: string, authorization: string): Promise<readonly string[]> {
  const transport = createGrpcWebTransport({ baseUrl, httpVersion: "1.1" });
  const request = create(listNamespaces.input);
  const { message } = await transport.unary(listNamespaces, undefined, undefined, { authorization }, request);
  return message.namespaces;
}

describe("the example that mounts the gateway into an application", () => {
  let uri: string;
  let end: () => Promise<void>;
  beforeAll(async () => {
    const { path, remove } = await temporaryDirectory();
    const [node, ...flags] = NODE;
    const child = spawn(node, [...flags, await copyExample("mounted.ts", path), `${path}/data`], {
      env: { ...process.env, TOKEN, PORT: "0" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    [uri] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    end = async () => {
      child.kill("SIGTERM");
      await once(child, "exit");
      await remove();
    };
  });
  afterAll(() => end());

  test("serves REST, Connect and gRPC-Web to callers that have logged in", async () => {
    const base = `${uri}/lance`;
    const login = { "header.authorization": `Bearer ${TOKEN}` };
    for (const protocol of ["rest", "connect"] as const) {
      await using namespace = await connect(protocol, { uri: base, ...login });
      await namespace.createNamespace({ id: [protocol] });
      await namespace.createTable({ id: [protocol, "t"] }, [{ id: 1, name: "Ada" }]);
      const table = await namespace.describeTable({ id: [protocol, "t"] });
      assert.ok(table.location);
    }
    assert.deepEqual(await namesByGrpcWeb(base, `Bearer ${TOKEN}`), ["connect", "rest"]);
  });

  test("leaves the login to the application, on each of these protocols", async () => {
    assert.equal((await fetch(`${uri}/lance/v1/namespace/%24/list`)).status, 401);
    const rpc = `${uri}/lance/${LanceNamespaceService.typeName}/ListNamespaces`;
    const headers = { "content-type": "application/json", authorization: "Bearer other" };
    assert.equal((await fetch(rpc, { method: "POST", headers, body: "{}" })).status, 401);
    await assert.rejects(namesByGrpcWeb(`${uri}/lance`, "Bearer other"), (error) => {
      return error instanceof ConnectError && error.code === Code.Unauthenticated;
    });
    assert.deepEqual(await (await fetch(uri)).json(), { text: "a page of the application" });
  });
});

describe("lanceGateway", () => {
  test("passes calls through its interceptors, and closes the backend with the application", async () => {
    const close = vi.fn(async () => {});
    const backend = { ...fakeBackend({}), close };
    const seen: string[] = [];
    const app = fastify({ routerOptions: { maxParamLength: 2_000 } });
    app.register(lanceGateway, {
      backend,
      prefix: "/a/b",
      interceptors: [
        (call, request) => {
          seen.push(`${call.protocol} ${request.operation} ${call.id.join("$").length}`);
          throw new LanceError("PermissionDenied", "not today");
        },
      ],
    });
    const name = "n".repeat(200);
    const { statusCode, body } = await app.inject({ method: "POST", url: `/a/b/v1/table/${name}/drop` });
    assert.deepEqual([statusCode, JSON.parse(body).error], [403, "not today"]);
    assert.deepEqual(seen, ["rest dropTable 200"]);
    assert.equal((await app.inject("/v1/namespace/%24/list")).statusCode, 404);
    await app.close();
    assert.equal(close.mock.calls.length, 1);
  });

  test("refuses a request with two credentials of a kind, and passes one with a single credential", async () => {
    const app = fastify();
    const describeTable = async () => create(LanceNamespaceService.method.describeTable.output);
    app.register(lanceGateway, { backend: fakeBackend({ describeTable }), prefix: "/lance" });
    await app.listen({ host: "127.0.0.1", port: 0 });
    const { port } = app.addresses()[0] as AddressInfo;
    const rpc = `/lance/${LanceNamespaceService.typeName}/DescribeTable`;
    for (const [path, expected] of [
      ["/lance/v1/table/t/describe", /^HTTP\/1.1 400 .*"code":13/s],
      [rpc, /^HTTP\/1.1 400 /],
    ] as const) {
      const ask = async (...credentials: readonly string[]) => {
        const { socket, received } = rawConnection(port);
        const lines = [
          "host: localhost",
          "content-type: application/json",
          "content-length: 12",
          ...credentials,
        ];
        socket.write(`POST ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n{"id":["t"]}`);
        await until(() => /\r\n\r\n.+/s.test(received()));
        socket.destroy();
        return received();
      };
      assert.match(await ask("authorization: Bearer a", "authorization: Bearer b"), expected);
      assert.match(await ask("x-api-key: a", "x-api-key: b"), expected);
      assert.match(await ask("x-api-key: a"), /^HTTP\/1.1 200 /);
    }
    await app.close();
  });

  test("sends events of changes to webhooks until the application closes", async (context) => {
    const { url, received } = await startReceiver(context);
    const createNamespace = async () => create(LanceNamespaceService.method.createNamespace.output);
    const app = fastify();
    const webhooks = await webhookTo(url, context);
    app.register(lanceGateway, { backend: fakeBackend({ createNamespace }), prefix: "/lance", ...webhooks });
    const { statusCode } = await app.inject({ method: "POST", url: "/lance/v1/namespace/n/create" });
    assert.equal(statusCode, 200);
    await app.close();
    assert.deepEqual(
      received.map(({ event }) => [event.type, event.subject]),
      [["lance.gateway.namespace.created", "n"]],
    );
  });

  test("refuses webhooks that cannot work when the application starts", async () => {
    const app = fastify();
    app.register(lanceGateway, {
      backend: fakeBackend({}),
      webhooks: [{ url: "https://hooks.example.com" }],
    });
    await assert.rejects(async () => app.ready(), /--webhook-url requires --webhook-dir/);
    await app.close();
  });

  test("warns of an application that bounds the names of tables", async ({ onTestFinished }) => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => void warn.mockRestore());
    const app = fastify();
    app.register(lanceGateway, { backend: fakeBackend({}) });
    await app.ready();
    assert.match(String(warn.mock.calls[0]?.[0]), /maxParamLength/);
    await app.close();
  });
});
