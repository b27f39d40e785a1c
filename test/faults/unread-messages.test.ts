import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, test } from "vitest";
import { drawKey } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { DescribeTableResponseSchema } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { encodeFrame } from "../../src/wires/grpc/frame.ts";
import { rawConnection } from "../fixtures/server/server.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";
import { until } from "../support/until.ts";

const SERVICE = "/lance.namespace.v1.LanceNamespaceService";
const key = drawKey();
const [right, wrong] = [key.text, drawKey().text];
const ring = {
  find: (text: string) =>
    text === right
      ? ({ id: key.id, hash: "", name: "ann", role: "reader", created: "2026-01-01T00:00:00.000Z" } as const)
      : ("unknown" as const),
  close() {},
};
const byCertificate = { needs: "a client certificate", prove: () => undefined, close() {} };

/** A message that names a table, and a caller if the key is given. */
const jsonOf = (apiKey?: string) => JSON.stringify({ id: ["t"], ...(apiKey && { identity: { apiKey } }) });
const binaryOf = (apiKey?: string) => {
  const { input } = LanceNamespaceService.method.describeTable;
  return toBinary(input, create(input, { id: ["t"], ...(apiKey && { identity: { apiKey } }) }));
};

interface Request {
  readonly path: string;
  readonly type: string;
  /** Returns the body of a call of describe that succeeds. */
  readonly body: (apiKey?: string) => Uint8Array;
}

/** Requests over HTTP/1.1; the first of each protocol describes a table. */
const REQUESTS: Readonly<Record<string, Request>> = {
  REST: {
    path: "/v1/table/t/describe",
    type: "application/json",
    body: (apiKey) => Buffer.from(apiKey === undefined ? "{}" : `{"identity":{"api_key":"${apiKey}"}}`),
  },
  "a query over REST": { path: "/v1/table/t/query", type: "application/json", body: () => Buffer.from("{}") },
  Connect: {
    path: `${SERVICE}/DescribeTable`,
    type: "application/json",
    body: (apiKey) => Buffer.from(jsonOf(apiKey)),
  },
  "Connect with Protobuf": { path: `${SERVICE}/DescribeTable`, type: "application/proto", body: binaryOf },
  "a query over Connect": {
    path: `${SERVICE}/QueryTable`,
    type: "application/connect+json",
    body: () => encodeFrame(Buffer.from(jsonOf()), false),
  },
  "an upload over Connect": {
    path: `${SERVICE}/CreateTable`,
    type: "application/connect+proto",
    body: () => encodeFrame(Buffer.from(binaryOf()), false),
  },
  "gRPC-Web": {
    path: `${SERVICE}/DescribeTable`,
    type: "application/grpc-web+proto",
    body: (apiKey) => encodeFrame(Buffer.from(binaryOf(apiKey)), false),
  },
};
const DESCRIBING = ["REST", "Connect", "Connect with Protobuf", "gRPC-Web"];

/** Whether bytes of HTTP/1.1 have the whole answer of a refused call, in the words of its protocol. */
function isRefusal(received: string): boolean {
  const [head = "", body] = received.split("\r\n\r\n", 2);
  if (body === undefined || !/content-length: (\d+)/i.test(head))
    return /grpc-status: 16|\r\n0\r\n\r\n$/i.test(received);
  return body.length >= Number(/content-length: (\d+)/i.exec(head)?.[1]);
}

/** Returns the head of a request. */
function headOf({ path, type }: Request, ...headers: readonly string[]): string {
  const lines = [`POST ${path} HTTP/1.1`, "host: localhost", `content-type: ${type}`, ...headers];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

const isUnauthenticated = (text: string) => / 401 |grpc-status: ?16|"code":"unauthenticated"/i.test(text);

describe("a message that is not read", () => {
  const servers: TestServer[] = [];
  let byKey: TestServer;
  let byCertificates: TestServer;
  beforeAll(async () => {
    const backend = () =>
      fakeBackend({ describeTable: async () => create(DescribeTableResponseSchema, { location: "there" }) });
    const serverOf = async (...ways: Parameters<typeof createAuthenticator>[0]) => {
      const authenticator = createAuthenticator(ways, { failed: () => 0 });
      const server = await startServer(backend(), {}, { authenticator });
      servers.push(server);
      return server;
    };
    byKey = await serverOf(proveByKeys(ring));
    byCertificates = await serverOf(byCertificate);
  });
  afterAll(() => Promise.all(servers.map(({ close }) => close())));

  for (const [name, request] of Object.entries(REQUESTS)) {
    test(`${name}: a wrong key is refused before any of the message, and its connection serves on`, async () => {
      const { socket, received } = rawConnection(byKey.port);
      socket.write(headOf(request, `x-api-key: ${wrong}`, "content-length: 20"));
      await until(() => isRefusal(received()));
      const refusal = received();
      assert.ok(isUnauthenticated(refusal), refusal);
      assert.doesNotMatch(refusal, /connection: close/i);
      // The gateway discards the announced message.
      const next = REQUESTS["REST"] as Request;
      socket.write(`${"x".repeat(20)}${headOf(next, `x-api-key: ${right}`, "content-length: 2")}{}`);
      await until(() => received().includes("there"));
      socket.destroy();
    });

    test(`${name}: a wrong key with a long message is refused before it, and its connection closes after it`, async () => {
      const { socket, received, closed } = rawConnection(byKey.port);
      socket.write(headOf(request, `x-api-key: ${wrong}`, "content-length: 100000"));
      await until(() => isRefusal(received()));
      const refusal = received();
      assert.ok(isUnauthenticated(refusal), refusal);
      assert.match(refusal, /connection: close/i);
      socket.write("x".repeat(100_000));
      await closed;
    });

    test(`${name}: a client that waits for "100 Continue" gets the refusal instead`, async () => {
      const { socket, received } = rawConnection(byKey.port);
      const headers = [`x-api-key: ${wrong}`, "content-length: 100000", "expect: 100-continue"];
      socket.write(headOf(request, ...headers));
      await until(() => isRefusal(received()));
      const refusal = received();
      assert.ok(isUnauthenticated(refusal), refusal);
      assert.doesNotMatch(refusal, / 100 /);
      socket.destroy();
    });

    test(`${name}: a caller who brings nothing is refused at once where no message could bring it`, async () => {
      const { socket, received } = rawConnection(byCertificates.port);
      socket.write(headOf(request, "transfer-encoding: chunked"));
      await until(() => isRefusal(received()));
      const refusal = received();
      assert.ok(isUnauthenticated(refusal), refusal);
      socket.destroy();
    });
  }

  for (const name of DESCRIBING) {
    const request = REQUESTS[name] as Request;
    test(`${name}: a key in the message counts where the headers have none`, async () => {
      for (const [apiKey, expected] of [
        [right, (text: string) => text.includes("there")],
        [wrong, isUnauthenticated],
        [undefined, isUnauthenticated],
      ] as const) {
        const { socket, received } = rawConnection(byKey.port);
        const body = request.body(apiKey);
        socket.write(headOf(request, `content-length: ${body.length}`, "expect: 100-continue"));
        await until(() => received().startsWith("HTTP/1.1 100 "));
        socket.write(body);
        await until(() => expected(received()));
        socket.destroy();
      }
    });
  }

  for (const method of ["DescribeTable", "QueryTable", "CreateTable"]) {
    test(`gRPC: a wrong key is refused before any of the message of ${method}, and its session serves on`, async ({
      onTestFinished,
    }) => {
      const session = connect(`http://127.0.0.1:${byKey.port}`);
      onTestFinished(() => session.destroy());
      const open = (path: string, apiKey: string) =>
        session.request({
          ...{ ":method": "POST", ":path": `${SERVICE}/${path}`, "content-type": "application/grpc" },
          ...{ te: "trailers", "x-api-key": apiKey },
        });
      const refused = open(method, wrong);
      const [headers] = await once(refused, "response");
      assert.equal(headers["grpc-status"], "16");
      refused.resume();
      await once(refused, "close");
      const next = open("DescribeTable", right);
      next.end(encodeFrame(Buffer.from(binaryOf()), false));
      const [trailers] = await once(next.resume(), "trailers");
      assert.equal(trailers["grpc-status"], "0");
    });
  }

  test("gRPC: a key in the message counts where the headers have none", async ({ onTestFinished }) => {
    const session = connect(`http://127.0.0.1:${byKey.port}`);
    onTestFinished(() => session.destroy());
    const statusOf = async (apiKey: string | undefined) => {
      const stream = session.request({
        ...{ ":method": "POST", ":path": `${SERVICE}/DescribeTable`, "content-type": "application/grpc" },
        te: "trailers",
      });
      let status: unknown;
      stream.on("response", (head) => (status ??= head["grpc-status"]));
      stream.on("trailers", (tail) => (status ??= tail["grpc-status"]));
      stream.resume().end(encodeFrame(Buffer.from(binaryOf(apiKey)), false));
      await once(stream, "close");
      return status;
    };
    assert.deepEqual(
      [await statusOf(right), await statusOf(wrong), await statusOf(undefined)],
      ["0", "16", "16"],
    );
  });
});
