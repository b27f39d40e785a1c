import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { type ClientReadableStream, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import {
  codecs,
  fakeService,
  METHODS,
  pathOfMethod,
  rawCall,
  startGrpc,
  statusOf,
} from "../../../test/fixtures/wires/grpc.ts";
import { steady } from "../../../test/support/steady.ts";
import { QueryTableRequestSchema, QueryTableResponseSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createByteBudget } from "../../namespace/memory/byte-budget.ts";
import { encodeFrame } from "./frame.ts";

const piece = (bytes: Uint8Array) => create(QueryTableResponseSchema, { data: { data: bytes } });

function query(client: Awaited<ReturnType<typeof startGrpc>>["client"]): ClientReadableStream<Message> {
  const request = create(QueryTableRequestSchema, {}) as Message;
  return client.makeServerStreamRequest(...codecs(METHODS.queryTable), request, new Metadata(), {});
}

test("a download arrives whole and in order", async () => {
  await using server = await startGrpc(
    fakeService({
      async *download(_method, _request, call) {
        call.responseHeaders["x-rows"] = "3";
        for (let fill = 0; fill < 3; fill++) yield piece(Buffer.alloc(300_000, fill));
      },
    }),
  );
  const call = query(server.client);
  const metadata = new Promise<Metadata>((resolve) => call.on("metadata", resolve));
  const fills: number[] = [];
  for await (const message of call)
    fills.push((message as { data: { data: Uint8Array } }).data.data[0] ?? -1);
  assert.deepEqual(fills, [0, 1, 2]);
  assert.deepEqual((await metadata).get("x-rows"), ["3"]);
});

test("the memory of a message may serve again when the next one is asked for", async () => {
  await using server = await startGrpc(
    fakeService({
      async *download() {
        const memory = Buffer.alloc(3_000_000);
        for (const [fill, length] of [3_000_000, 70_000, 10, 65_536, 2_000_000].entries()) {
          yield piece(memory.fill(fill + 1).subarray(0, length));
          memory.fill(0xff);
        }
      },
    }),
  );
  const received: [number, number, boolean][] = [];
  for await (const message of query(server.client)) {
    const { data } = (message as { data: { data: Uint8Array } }).data;
    received.push([data[0] ?? -1, data.length, data.every((byte) => byte === data[0])]);
    await sleep(20);
  }
  assert.deepEqual(
    received,
    [3_000_000, 70_000, 10, 65_536, 2_000_000].map((length, fill) => [fill + 1, length, true]),
  );
});

test("a download that fails after its first message ends in an error", async () => {
  await using server = await startGrpc(
    fakeService({
      async *download() {
        yield piece(Buffer.from("first"));
        throw new LanceError("ServiceUnavailable", "store gone");
      },
    }),
  );
  let received = 0;
  await assert.rejects(
    async () => {
      for await (const _ of query(server.client)) received++;
    },
    (error: ServiceError) => error.code === status.UNAVAILABLE && error.details === "store gone",
  );
  assert.equal(received, 1);
});

test("a client that does not read holds the download back, and its going ends it", async () => {
  let made = 0;
  let ended = false;
  await using server = await startGrpc(
    fakeService({
      async *download() {
        try {
          for (;;) {
            made++;
            yield piece(Buffer.alloc(100_000));
          }
        } finally {
          ended = true;
        }
      },
    }),
  );
  const stream = server.session.request({
    ":method": "POST",
    ":path": pathOfMethod(METHODS.queryTable),
    "content-type": "application/grpc",
  });
  stream.on("error", () => {});
  stream.end(encodeFrame(new Uint8Array(0), false));
  const held = await steady(() => made);
  assert.ok(held < 20, `${held} messages were made for a client that reads nothing`);
  stream.close(8);
  await expect.poll(() => ended).toBe(true);
});

test("a deadline cuts off a download that the client does not take", async () => {
  const ended = Promise.withResolvers<void>();
  await using server = await startGrpc(
    fakeService({
      async *download() {
        try {
          for (;;) yield piece(Buffer.alloc(100_000));
        } finally {
          ended.resolve();
        }
      },
    }),
  );
  const stream = server.session.request({
    ":method": "POST",
    ":path": pathOfMethod(METHODS.queryTable),
    "content-type": "application/grpc",
    "grpc-timeout": "50m",
  });
  stream.on("error", () => {});
  stream.end(encodeFrame(new Uint8Array(0), false));
  const closed = new Promise<void>((resolve) => stream.on("close", resolve));
  await ended.promise;
  stream.resume();
  await closed;
  assert.equal(stream.rstCode, 8);
});

test("the request of a download counts for the memory of requests until the download ends", async () => {
  const budget = createByteBudget(100_000);
  await using server = await startGrpc(
    fakeService({
      async *download() {
        for (let count = 0; count < 3; count++) yield piece(Buffer.alloc(100_000));
      },
    }),
    { budget },
  );
  const context = { filler: "x".repeat(80_000) };
  const frame = encodeFrame(
    toBinary(QueryTableRequestSchema, create(QueryTableRequestSchema, { context })),
    false,
  );
  const session = connect(`http://${server.address}`, { settings: { initialWindowSize: 0 } });
  const path = { ":path": pathOfMethod(METHODS.queryTable) };
  // Its client takes nothing of the answer.
  const stream = session.request({ ":method": "POST", ...path, "content-type": "application/grpc" });
  stream.end(frame);
  await once(stream, "response");
  assert.equal(statusOf(await rawCall(server.session, frame, path)), status.RESOURCE_EXHAUSTED);
  session.destroy();
  await expect.poll(() => budget.held).toBe(0);
  assert.equal(statusOf(await rawCall(server.session, frame, path)), status.OK);
});

test("an upload needs a message, and a download takes only one", async () => {
  await using server = await startGrpc(fakeService());

  const empty = await rawCall(server.session, undefined, { ":path": pathOfMethod(METHODS.createTable) });
  assert.equal(statusOf(empty), status.INVALID_ARGUMENT);
  const two = Buffer.alloc(10);
  const answer = await rawCall(server.session, two, { ":path": pathOfMethod(METHODS.queryTable) });
  assert.equal(statusOf(answer), status.UNIMPLEMENTED);
});

test("sessions that die in the middle of calls harm nobody", async () => {
  await using server = await startGrpc(
    fakeService({
      async unary() {
        await sleep(20);
        throw new LanceError("Internal", "x");
      },
      async *download() {
        for (;;) {
          await sleep(1);
          yield piece(Buffer.alloc(10_000));
        }
      },
    }),
  );
  const address = server.client.getChannel().getTarget().replace(/^dns:/, "");
  for (let round = 0; round < 20; round++) {
    const session = connect(`http://${address}`);
    session.on("error", () => {});
    for (const method of [METHODS.describeTable, METHODS.queryTable, METHODS.createTable]) {
      const stream = session.request({
        ":method": "POST",
        ":path": pathOfMethod(method),
        "content-type": "application/grpc",
      });
      stream.on("error", () => {});
      stream.write(encodeFrame(new Uint8Array(0), false));
      if (method !== METHODS.createTable) stream.end();
    }
    // Each session dies at another moment of its calls.
    await sleep(round * 2);
    session.destroy();
  }
  const call = query(server.client).on("error", () => {});
  await new Promise((resolve) => call.on("data", resolve));
  call.cancel();
});
