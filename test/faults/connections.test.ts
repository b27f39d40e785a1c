import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, test } from "vitest";
import { CreateTableResponseSchema } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { NamespaceExistsResponseSchema } from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { cut, people, personStream } from "../support/arrow.ts";
import { createConnectClient } from "../support/connect-client.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { sendHttp } from "../support/http.ts";
import { createProtocolClients } from "../support/protocols.ts";
import { bytewise, type Relay, startProxy, straight } from "../support/proxy.ts";
import { createRestClient } from "../support/rest-client.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";

const backend = fakeBackend({
  namespaceExists: async () => create(NamespaceExistsResponseSchema),
  async createTable(_, data) {
    let bytes = 0;
    for await (const piece of data) bytes += piece.length;
    return create(CreateTableResponseSchema, { version: BigInt(bytes) });
  },
});

/** Waits until a socket is closed, with or without an error. */
function closeOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

describe("connections", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer(backend);
  });
  afterAll(() => server.close());

  /** Checks the probes and one call on every wire. */
  async function assertHealthy(): Promise<void> {
    for (const path of ["/healthz", "/readyz"]) {
      assert.equal((await sendHttp(server.port, { method: "GET", path })).status, 200);
    }
    for (const { client, close } of Object.values(createProtocolClients(server.port))) {
      await client.namespaceExists();
      close();
    }
  }

  test("every wire works when the client's bytes come one at a time", async () => {
    const proxy = await startProxy(server.port, bytewise, straight);
    const body = personStream(people(1));
    for (const [protocol, { client, close }] of Object.entries(createProtocolClients(proxy.port))) {
      await client.namespaceExists();
      const { version } = await client.createTable({ id: ["t"] }, body);
      assert.equal(Number(version), body.length, protocol);
      close();
    }
    proxy.close();
  });

  /** Returns the bytes that a client sends during an upload on one wire. */
  async function conversation(open: typeof createGrpcClient): Promise<Buffer> {
    const pieces: Buffer[] = [];
    const recorded: Relay = (piece, send) => {
      pieces.push(piece);
      return send(piece);
    };
    const proxy = await startProxy(server.port, recorded, straight);
    const { client, close } = open(proxy.port);
    await client.createTable({ id: ["t"] }, cut(personStream(people(2)), 300));
    close();
    proxy.close();
    return Buffer.concat(pieces);
  }

  for (const [wire, open] of [
    ["gRPC", createGrpcClient],
    ["Connect", createConnectClient],
    ["REST", createRestClient],
  ] as const) {
    for (const ending of ["a reset", "an end"] as const) {
      test(`${wire}: ${ending} at any stage of a call harms no other client`, async () => {
        const bytes = await conversation(open);
        const lengths = Array.from({ length: bytes.length + 1 }, (_, length) => length);
        // The test cuts at every byte of the beginning, where protocols are detected, and at every seventh byte later.
        for (const length of lengths.filter((length) => length < 60 || length % 7 === 0)) {
          const socket = connect({ host: "127.0.0.1", port: server.port, noDelay: true });
          socket.on("error", () => {});
          socket.resume();
          await once(socket, "connect");
          const closed = closeOf(socket);
          await new Promise<void>((written) => socket.write(bytes.subarray(0, length), () => written()));
          if (ending === "a reset") socket.resetAndDestroy();
          else socket.end(() => socket.destroySoon());
          await closed;
        }
        await assertHealthy();
      });
    }
  }

  test("bytes of no known protocol end only their own connection", async () => {
    for (const text of [
      "\r\n\r\n",
      "GET",
      "\u0016\u0003\u0001\u0002\u0000\u0001",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense that is no frame",
      "PRI * HTTP/1.1\r\n\r\n",
      "POST /v1/table/t/create HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
      `GET /${"x".repeat(100_000)} HTTP/1.1\r\n\r\n`,
    ]) {
      const socket = connect({ host: "127.0.0.1", port: server.port });
      socket.on("error", () => {});
      socket.resume();
      socket.end(text, "latin1");
      await closeOf(socket);
    }
    await assertHealthy();
  });
});
