import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { create, type Message } from "@bufbuild/protobuf";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Client, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, test } from "vitest";
import {
  QueryTableRequestSchema,
  QueryTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { definitionOf } from "../support/grpc-client.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";

const method = LanceNamespaceService.method.queryTable;
const STREAM = "application/vnd.apache.arrow.stream";

/** Streams that are open in the backend, and how many ended with their signal aborted. */
const streams = { open: 0, aborted: 0, allEnded: Promise.withResolvers<void>() };

const backend = fakeBackend({
  async *queryTable(_, call) {
    streams.open += 1;
    try {
      const data = Buffer.alloc(1000);
      yield create(QueryTableResponseSchema, { data: { contentType: STREAM, data } });
      // Nothing more comes: only the client's leaving ends this.
      if (!call.signal.aborted) await once(call.signal, "abort");
      call.signal.throwIfAborted();
    } finally {
      streams.open -= 1;
      if (call.signal.aborted) streams.aborted += 1;
      if (streams.open === 0) streams.allEnded.resolve();
    }
  },
});

/** Sockets, streams and timers that keep the process busy. */
function activeHandles(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind !== "Immediate").length;
}

describe("clients that go away in the middle of an answer", { timeout: 60_000 }, () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer(backend);
  });
  afterAll(() => server.close());

  /** Runs a wave of calls that are aborted after their first piece, and waits until the backend knows. */
  async function wave(count: number, call: () => Promise<void>): Promise<void> {
    streams.aborted = 0;
    streams.allEnded = Promise.withResolvers();
    await Promise.all(Array.from({ length: count }, call));
    if (streams.open > 0) await streams.allEnded.promise;
    assert.equal(streams.aborted, count, "every call was told that its client is gone");
  }

  async function assertFlat(call: () => Promise<void>): Promise<void> {
    await wave(20, call);
    const before = activeHandles();
    for (let round = 0; round < 10; round += 1) await wave(50, call);
    const grown = activeHandles() - before;
    // A few connections of the clients' pools may be on their way out.
    assert.ok(grown < 25, `${grown} handles more after 500 aborted calls`);
  }

  test("gRPC: 500 cancelled calls on one connection leave nothing behind", async () => {
    const client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
    const { path, requestSerialize, responseDeserialize } = definitionOf(method);
    await assertFlat(async () => {
      const message = create(QueryTableRequestSchema, { id: ["t"] });
      const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, message);
      call.on("error", () => {});
      await once(call, "data");
      call.cancel();
    });
    client.close();
  });

  test("Connect: 500 aborted calls leave nothing behind", async () => {
    const baseUrl = `http://127.0.0.1:${server.port}`;
    const transport = createConnectTransport({ baseUrl, httpVersion: "1.1" });
    await assertFlat(async () => {
      const controller = new AbortController();
      const { message } = await transport.stream(
        method,
        controller.signal,
        undefined,
        undefined,
        (async function* (): AsyncIterable<Message> {
          yield create(QueryTableRequestSchema, { id: ["t"] });
        })() as never,
      );
      await message[Symbol.asyncIterator]().next();
      controller.abort();
    });
  });

  test("REST: 500 dropped connections leave nothing behind", async () => {
    const { port } = server;
    await assertFlat(async () => {
      const headers = { accept: STREAM };
      const outgoing = request({
        host: "127.0.0.1",
        port,
        method: "POST",
        path: "/v1/table/t/query",
        headers,
      });
      outgoing.on("error", () => {});
      outgoing.end("{}");
      const [response] = await once(outgoing, "response");
      response.on("error", () => {});
      await once(response, "data");
      outgoing.destroy();
    });
  });
});
