import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, test } from "vitest";
import {
  CreateTableRequestSchema,
  CreateTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/data_pb.ts";
import {
  CreateNamespaceResponseSchema,
  NamespaceExistsResponseSchema,
} from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { CallError, type ProtocolClient } from "../support/client.ts";
import { sendHttp } from "../support/http.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";
import { steady } from "../support/steady.ts";

const KIB = 1024;
const MAX_BUFFERED = 512 * KIB;
/** Size of a body that never ends, in bytes; a few such bodies fill the budget. */
const STALLED = 200 * KIB;
const BODIES = 6;
/** Bodies for which the budget has room; a refused one gives up what it held, and makes room for those beside it. */
const HELD = Math.floor(MAX_BUFFERED / STALLED);
const RPC = "/lance.namespace.v1.LanceNamespaceService";
const ARROW = "application/vnd.apache.arrow.stream";

const backend = fakeBackend({
  createNamespace: async () => create(CreateNamespaceResponseSchema),
  namespaceExists: async () => create(NamespaceExistsResponseSchema),
  async createTable(_, data) {
    for await (const _piece of data);
    return create(CreateTableResponseSchema);
  },
});

function prefixed(message: Uint8Array, length: number = message.length): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

const zeros = Buffer.alloc(STALLED);
const piece = create(CreateTableRequestSchema, { id: ["t"], data: { data: zeros } });
const upload = prefixed(toBinary(CreateTableRequestSchema, piece));
const rpc = (method: string, contentType: string) => ({
  ":path": `${RPC}/${method}`,
  "content-type": contentType,
  te: "trailers",
});

/** The beginnings of requests that hold bytes until they end. */
const UNFINISHED: Readonly<Record<string, readonly [Record<string, string>, Buffer]>> = {
  "REST, JSON": [{ ":path": "/v1/namespace/n/create", "content-type": "application/json" }, zeros],
  "REST, Arrow": [{ ":path": "/v1/table/t/create", "content-type": ARROW }, zeros],
  "gRPC, a message": [rpc("CreateNamespace", "application/grpc"), prefixed(zeros, 2 * STALLED)],
  "gRPC, an upload": [rpc("CreateTable", "application/grpc"), upload],
  "Connect, a message": [rpc("CreateNamespace", "application/proto"), zeros],
  "Connect, an upload": [rpc("CreateTable", "application/connect+proto"), upload],
  "gRPC-Web, a message": [rpc("CreateNamespace", "application/grpc-web+proto"), prefixed(zeros, 2 * STALLED)],
};

describe("the memory for requests", () => {
  let server: TestServer;
  let clients: Readonly<Record<string, ProtocolClient>>;
  let session: ClientHttp2Session;
  beforeAll(async () => {
    server = await startServer(backend, { maxBufferedBytes: MAX_BUFFERED });
    clients = createProtocolClients(server.port);
  });
  afterAll(async () => {
    for (const client of Object.values(clients)) client.close();
    await server.close();
  });

  const large = (protocol: string) =>
    (clients[protocol] as ProtocolClient).client.createNamespace({
      id: ["n"],
      properties: { filler: "x".repeat(STALLED) },
    });

  /**
   * Sends beginnings until the server holds as many as fit. Of bodies that arrive side by side it
   * may refuse more than it has no room for; others are sent in place of these.
   */
  async function fill([headers, body]: readonly [Record<string, string>, Buffer]): Promise<void> {
    session = connect(`http://127.0.0.1:${server.port}`);
    session.on("error", () => {});
    let [sent, refused] = [0, 0];
    const send = () => {
      sent++;
      const stream = session.request({ ":method": "POST", ...headers });
      stream.on("error", () => {});
      stream.on("response", () => refused++);
      stream.resume();
      stream.write(body);
    };
    while (sent < BODIES) send();
    while (sent - (await steady(() => refused)) !== HELD) if (sent - refused < HELD) send();
  }

  /** Makes a large call, for which the budget has room once the other clients have left. */
  async function assertRecovered(protocol: string): Promise<void> {
    for (;;) {
      const outcome = await large(protocol).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (outcome === undefined) return;
      assert.equal((outcome as CallError).failure.code, 21);
    }
  }

  for (const [what, beginning] of Object.entries(UNFINISHED)) {
    test(`unfinished requests (${what}) fill it for all protocols, and release it`, {
      timeout: 60_000,
    }, async () => {
      await fill(beginning);
      for (const protocol of Object.keys(PROTOCOLS)) {
        const refused = await large(protocol).then(
          () => assert.fail(`${protocol} was not refused`),
          (error: unknown) => error,
        );
        assert.ok(refused instanceof CallError, `${protocol}: ${refused}`);
        assert.equal(refused.failure.code, 21, `${protocol}: ${refused.message}`);
        await (clients[protocol] as ProtocolClient).client.namespaceExists();
      }
      for (const path of ["/healthz", "/readyz"]) {
        assert.equal((await sendHttp(server.port, { method: "GET", path })).status, 200);
      }
      session.destroy();
      await assertRecovered("gRPC");
    });
  }

  /** Headers and beginnings of requests that are refused before their ends. */
  const REFUSED: typeof UNFINISHED = {
    "REST, JSON": [{ ...UNFINISHED["REST, JSON"]?.[0], "content-length": "1000000000" }, zeros],
    "REST, a type": [{ ":path": "/v1/namespace/n/create", "content-type": "image/png" }, zeros],
    "gRPC, a message": [rpc("CreateNamespace", "application/grpc"), prefixed(zeros, 1e9)],
    "gRPC, a type": [rpc("CreateNamespace", "application/grpc+x"), zeros],
    "Connect, a message": [
      { ...rpc("CreateNamespace", "application/proto"), "content-length": "1000000000" },
      zeros,
    ],
    "Connect, an upload": [rpc("CreateTable", "application/connect+proto"), prefixed(zeros, 1e9)],
    "gRPC-Web, a message": [rpc("CreateNamespace", "application/grpc-web+proto"), prefixed(zeros, 1e9)],
  };
  for (const [what, [headers, body]] of Object.entries(REFUSED)) {
    test(`data that arrives after a refusal (${what}) takes none of it`, async () => {
      session = connect(`http://127.0.0.1:${server.port}`);
      const streams = Array.from({ length: BODIES }, () => {
        const stream = session.request({ ":method": "POST", ...headers });
        stream.resume().write(body);
        return stream;
      });
      // Each ends, although its client could send on: nothing of it is left.
      await Promise.all(streams.map((stream) => once(stream, "close")));
      // The server counts what it has seen at two looks, which are 100 ms apart.
      await sleep(300);
      await large("REST").finally(() => session.destroy());
    });
  }

  test("an announced length alone takes none of it", async () => {
    const sockets = [];
    for (let count = 0; count < 10; count++) {
      const socket = connectTcp(server.port, "127.0.0.1");
      await once(socket, "connect");
      socket.write(
        `POST /v1/namespace/n/create HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${MAX_BUFFERED}\r\n\r\n`,
      );
      sockets.push(socket);
    }
    await sendHttp(server.port, { method: "GET", path: "/healthz" });
    await large("REST");
    for (const socket of sockets) socket.destroy();
  });

  test("a refused request gets the time of its next attempt", async () => {
    await fill(UNFINISHED["REST, JSON"] as never);
    const body = JSON.stringify({ properties: { filler: "x".repeat(STALLED) } });
    const answer = await sendHttp(server.port, { path: "/v1/namespace/n/create", body });
    assert.deepEqual([answer.status, answer.headers["retry-after"]], [429, "1"]);
    session.destroy();
    await assertRecovered("REST");
  });
});
