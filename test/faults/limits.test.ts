import assert from "node:assert/strict";
import { randomFillSync } from "node:crypto";
import { gzipSync } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import { compressionGzip, createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { compressionAlgorithms } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, test } from "vitest";
import { CreateTableResponseSchema } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { CreateNamespaceResponseSchema } from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { cut, paddedStream } from "../support/arrow.ts";
import { CallError, type LanceClient, type ProtocolClient } from "../support/client.ts";
import { clientOf } from "../support/connect-client.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { jsonOf, type RawRequest, sendHttp } from "../support/http.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";

const KIB = 1024;
const maxMessageBytes = 64 * KIB;
const maxUploadBytes = 256 * KIB;
const RESOURCE_EXHAUSTED = 8;

/** Delays the answers of uploads after their last byte, as a slow engine would. */
let beforeAnswering: Promise<void> = Promise.resolve();

const backend = fakeBackend({
  createNamespace: async () => create(CreateNamespaceResponseSchema),
  async createTable(_, data) {
    let bytes = 0;
    for await (const piece of data) bytes += piece.length;
    await beforeAnswering;
    return create(CreateTableResponseSchema, { version: BigInt(bytes) });
  },
});

async function assertTooLarge(protocol: string, call: Promise<unknown>): Promise<void> {
  const thrown = await call.then(
    () => assert.fail(`${protocol} took it`),
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof CallError, `${protocol}: ${thrown}`);
  const { httpStatus, grpcCode } = thrown.failure;
  if (protocol === "REST") assert.equal(httpStatus, 413);
  else assert.equal(grpcCode, RESOURCE_EXHAUSTED, `${protocol}: ${thrown.message}`);
}

describe("limits of bodies", () => {
  let server: TestServer;
  let clients: Readonly<Record<string, ProtocolClient>>;
  beforeAll(async () => {
    const limits = { maxMessageBytes, maxUploadBytes, maxBufferedBytes: 2 * maxUploadBytes };
    server = await startServer(backend, limits);
    clients = createProtocolClients(server.port);
  });
  afterAll(async () => {
    for (const client of Object.values(clients)) client.close();
    await server.close();
  });

  const clientOfWire = (protocol: string) => (clients[protocol] as ProtocolClient).client;
  const properties = (bytes: number) => ({ filler: "x".repeat(bytes) });
  const upload = (client: LanceClient, bytes: number) =>
    client.createTable({ id: ["t"] }, cut(paddedStream(bytes), 32 * KIB));

  for (const protocol of Object.keys(PROTOCOLS)) {
    test(`${protocol}: a message at the limit is accepted, a larger one is refused`, async () => {
      const client = clientOfWire(protocol);
      await client.createNamespace({ id: ["n"], properties: properties(maxMessageBytes - 100) });
      const call = client.createNamespace({ id: ["n"], properties: properties(maxMessageBytes) });
      await assertTooLarge(protocol, call);
    });

    test(`${protocol}: an upload at the limit is accepted, an upload of one more byte is refused`, async () => {
      const client = clientOfWire(protocol);
      assert.equal(Number((await upload(client, maxUploadBytes)).version), maxUploadBytes);
      await assertTooLarge(protocol, upload(client, maxUploadBytes + 1));
    });

    test(`${protocol}: an upload without an end is refused`, async () => {
      async function* endless() {
        for (;;) yield Buffer.alloc(32 * KIB);
      }
      await assertTooLarge(protocol, clientOfWire(protocol).createTable({ id: ["t"] }, endless()));
    });
  }

  test("concurrent bodies share one budget, and a refused body may be sent again", async () => {
    const gate = Promise.withResolvers<void>();
    beforeAnswering = gate.promise;
    const calls = ["gRPC", "Connect", "REST"].map((protocol) =>
      upload(clientOfWire(protocol), maxUploadBytes),
    );
    const refused = await Promise.any(
      calls.map((call) =>
        call.then(
          () => Promise.reject(),
          (error) => error,
        ),
      ),
    );
    gate.resolve();
    beforeAnswering = Promise.resolve();
    assert.equal((refused as CallError).failure.code, 21);
    const outcomes = await Promise.allSettled(calls);
    assert.ok(outcomes.some(({ status }) => status === "fulfilled"));
    for (const { client } of Object.values(clients)) await upload(client, maxUploadBytes);
  });

  const bomb = gzipSync(Buffer.alloc(4096 * KIB, "x"));
  const json = Buffer.from(JSON.stringify({ properties: properties(maxMessageBytes) }));
  const jsonBomb = gzipSync(JSON.stringify({ properties: properties(4096 * KIB) }));
  const chunked = (bytes: Uint8Array) => cut(bytes, 16 * KIB);
  const create1 = "/v1/namespace/n/create";
  const create2 = "/v1/table/t/create";
  const gzip = { "content-encoding": "gzip" };
  const requests: Record<string, RawRequest> = {
    "JSON with its length": { path: create1, body: json },
    "JSON in chunks": { path: create1, body: chunked(json) },
    "JSON that is a bomb, with its length": { path: create1, body: jsonBomb, headers: gzip },
    "JSON that is a bomb, in chunks": { path: create1, body: chunked(jsonBomb), headers: gzip },
    "Arrow with its length": { path: create2, body: Buffer.alloc(maxUploadBytes + 1) },
    "Arrow in chunks": { path: create2, body: chunked(Buffer.alloc(maxUploadBytes + 1)) },
    "Arrow that is a bomb, with its length": { path: create2, body: bomb, headers: gzip },
    "Arrow that is a bomb, in chunks": { path: create2, body: chunked(bomb), headers: gzip },
    "a body that is only announced": { path: create1, headers: { "content-length": "99999999999" } },
  };
  for (const [what, request] of Object.entries(requests)) {
    test(`REST: ${what} is refused with 413 and an error body`, async () => {
      const answer = await sendHttp(server.port, request);
      assert.equal(answer.status, 413);
      const { code, status } = jsonOf(answer);
      assert.deepEqual([code, status], [13, 413]);
    });
  }

  test("REST: a compressed body within the limits is accepted", async () => {
    const body = gzipSync(JSON.stringify({ properties: properties(100) }));
    assert.equal((await sendHttp(server.port, { path: create1, body, headers: gzip })).status, 200);
  });

  const compressed: Record<string, (port: number) => ProtocolClient> = {
    gRPC: (port) =>
      createGrpcClient(port, {}, { "grpc.default_compression_algorithm": compressionAlgorithms.gzip }),
    Connect: (port) => clientOf(createConnectTransport(compressing(port))),
    "gRPC-Web": (port) => clientOf(createGrpcWebTransport(compressing(port))),
  };
  const compressing = (port: number) => ({
    baseUrl: `http://127.0.0.1:${port}`,
    httpVersion: "1.1" as const,
    sendCompression: compressionGzip,
    compressMinBytes: 0,
  });
  for (const [protocol, open] of Object.entries(compressed)) {
    test(`${protocol}: the limit applies to the unpacked size of a compressed message`, async () => {
      const { client, close } = open(server.port);
      await client.createNamespace({ id: ["n"], properties: properties(maxMessageBytes - 100) });
      const message = client.createNamespace({ id: ["n"], properties: properties(4096 * KIB) });
      await assertTooLarge(protocol, message);
      const pieces = cut(Buffer.alloc(maxUploadBytes + 1), 32 * KIB);
      await assertTooLarge(protocol, client.createTable({ id: ["t"] }, pieces));
      const noise = paddedStream(maxUploadBytes);
      // In the padding, before what follows the schema.
      randomFillSync(noise, maxUploadBytes / 2, maxUploadBytes / 2 - KIB);
      await client.createTable({ id: ["t"] }, cut(noise, 32 * KIB));
      close();
    });
  }
});
