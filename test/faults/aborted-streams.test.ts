import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { setImmediate as turn } from "node:timers/promises";
import { create, type Message } from "@bufbuild/protobuf";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Client, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, test } from "vitest";
import {
  QueryTableRequestSchema,
  QueryTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { collect } from "../support/collect.ts";
import { definitionOf } from "../support/grpc-client.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";

const method = LanceNamespaceService.method.queryTable;
const STREAM = "application/vnd.apache.arrow.stream";

/** The number of streams that are open in the backend, and of those that ended with their signal aborted. */
const streams = { open: 0, aborted: 0 };

const backend = fakeBackend({
  async *queryTable(_, call) {
    streams.open += 1;
    try {
      const data = Buffer.alloc(1000);
      yield create(QueryTableResponseSchema, { data: { contentType: STREAM, data } });
      // Nothing more comes: only the client's departure ends the stream.
      if (!call.signal.aborted) await once(call.signal, "abort");
      call.signal.throwIfAborted();
    } finally {
      streams.open -= 1;
      if (call.signal.aborted) streams.aborted += 1;
    }
  },
});

/** Number of calls of each protocol; `ABORTS=10000` is the long run. */
const CALLS = Number(process.env["ABORTS"] ?? 3_000);

/** Number of concurrent calls. */
const WAVE = 100;

/** Number of waves in each half; the first half fills pools and caches. */
const WAVES = CALLS / WAVE / 2;

/** Maximum memory that may remain of a call, in bytes; a leaked stream would hold some kilobytes. */
const KEPT_BYTES = 500;

/** Returns the number of sockets, streams and timers that keep the process busy. */
function activeHandles(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind !== "Immediate").length;
}

describe("clients that go away in the middle of an answer", { timeout: 120_000 }, () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer(backend);
  });
  afterAll(() => server.close());

  /** Runs a wave of calls that are aborted after their first piece, and waits until the backend knows. */
  async function wave(count: number, call: () => Promise<void>): Promise<void> {
    streams.aborted = 0;
    await Promise.all(Array.from({ length: count }, call));
    while (streams.open > 0) await turn();
    assert.equal(streams.aborted, count, "every call was told that its client is gone");
  }

  /** Returns the number of bytes in use after a garbage collection. */
  function heapInUse(): number {
    collect();
    return process.memoryUsage().heapUsed;
  }

  async function assertFlat(call: () => Promise<void>): Promise<void> {
    for (let round = 0; round < WAVES; round += 1) await wave(WAVE, call);
    const before = { handles: activeHandles(), bytes: heapInUse() };
    for (let round = 0; round < WAVES; round += 1) await wave(WAVE, call);
    const grown = { handles: activeHandles() - before.handles, bytes: heapInUse() - before.bytes };
    // A few connections of the clients' pools may still be closing.
    assert.ok(grown.handles < 25, `${grown.handles} handles more after ${CALLS / 2} aborted calls`);
    const perCall = Math.round(grown.bytes / (CALLS / 2));
    assert.ok(perCall < KEPT_BYTES, `${perCall} bytes of the heap stay of each aborted call`);
  }

  test(`gRPC: ${CALLS} cancelled calls leave no handle and no memory behind`, async () => {
    const { path, requestSerialize, responseDeserialize } = definitionOf(method);
    // The server ends a connection with too many resets, so that each wave has its own connection.
    const connectAnew = () =>
      new Client(`127.0.0.1:${server.port}`, credentials.createInsecure(), {
        "grpc.use_local_subchannel_pool": 1,
      });
    let [client, calls] = [connectAnew(), 0];
    await assertFlat(async () => {
      if (calls++ % WAVE === 0) {
        client.close();
        client = connectAnew();
      }
      const message = create(QueryTableRequestSchema, { id: ["t"] });
      const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, message);
      call.on("error", () => {});
      await once(call, "data");
      call.cancel();
    });
    client.close();
  });

  test(`Connect: ${CALLS} aborted calls leave no handle and no memory behind`, async () => {
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

  test(`REST: ${CALLS} dropped connections leave no handle and no memory behind`, async () => {
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
