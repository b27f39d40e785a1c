import assert from "node:assert/strict";
import { once } from "node:events";
import { constants } from "node:http2";
import { setImmediate as nextTurn } from "node:timers/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Metadata, status } from "@grpc/grpc-js";
import { test } from "vitest";
import {
  callUnary,
  fakeService,
  METHODS,
  pathOfMethod,
  pausedService,
  rawCall,
  startGrpc,
  statusOf,
} from "../../../test/fixtures/wires/grpc.ts";
import { createSlowList } from "../../../test/support/slow-list.ts";
import {
  DescribeTableRequestSchema,
  DescribeTableResponseSchema,
  ListTablesResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createByteBudget } from "../../namespace/memory/byte-budget.ts";
import { FREE_BYTES } from "../limits.ts";
import { encodeFrame } from "./frame.ts";

const request = toBinary(DescribeTableRequestSchema, create(DescribeTableRequestSchema, { id: ["a", "b"] }));

test("a call carries messages, metadata and the request id both ways", async () => {
  let seen: Call | undefined;
  await using server = await startGrpc(
    fakeService({
      async unary(_method, message, call) {
        seen = call;
        call.responseHeaders["x-answer"] = "yes";
        call.responseHeaders["content-type"] = "text/html";
        call.responseHeaders["not a name"] = "x";
        return create(DescribeTableResponseSchema, {
          table: (message as unknown as { id: string[] }).id.join("/"),
        });
      },
    }),
  );
  const metadata = new Metadata();
  metadata.set("x-request-id", "client-id-1");
  metadata.set("key-bin", Buffer.from([0, 255]));
  const { response, metadata: initial } = await callUnary(server.client, { id: ["a", "b"] }, metadata);
  assert.equal(response?.["table"], "a/b");
  assert.equal(seen?.protocol, "grpc");
  assert.equal(seen?.requestId, "client-id-1");
  assert.equal(seen?.headers["key-bin"], "AP8=");
  assert.equal(seen?.headers[":path"], undefined);
  assert.equal(seen?.deadline, undefined);
  assert.deepEqual(initial?.get("x-answer"), ["yes"]);
  assert.deepEqual(initial?.get("x-request-id"), ["client-id-1"]);
});

test("a long list is sent in pieces, packed or not", async () => {
  const answer = create(ListTablesResponseSchema, {
    tables: Array.from({ length: 100_000 }, (_, i) => `é${i}`),
  });
  for (const gzipMinBytes of [Number.POSITIVE_INFINITY, 1000]) {
    const service = fakeService({ unary: async () => answer as never });
    await using server = await startGrpc(service, { gzipMinBytes });
    const path = pathOfMethod(METHODS.listTables);
    const { body, trailers } = await rawCall(server.session, encodeFrame(request, false), {
      ":path": path,
      "grpc-accept-encoding": "gzip",
    });
    assert.equal(trailers["grpc-status"], "0");
    assert.equal(body.readUInt32BE(1), body.length - 5);
    const message = body[0] === 1 ? gunzipSync(body.subarray(5)) : body.subarray(5);
    assert.deepEqual(fromBinary(ListTablesResponseSchema, message), answer);
  }
});

test("a long list is encoded no further once its client has left", async () => {
  let call: Call | undefined;
  const slow = createSlowList(() => call?.signal.aborted === true);
  const answer = create(ListTablesResponseSchema, { tables: slow.list });
  const service = fakeService({
    async unary(_method, _request, given) {
      call = given;
      return answer as never;
    },
  });
  await using server = await startGrpc(service);
  const stream = server.session.request({
    ":method": "POST",
    ":path": pathOfMethod(METHODS.listTables),
    "content-type": "application/grpc",
  });
  stream.on("error", () => {}).end(encodeFrame(request, false));
  await slow.begun;
  stream.close(constants.NGHTTP2_CANCEL);
  await once((call as unknown as Call).signal, "abort");
  const { steps } = slow;
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  assert.equal(slow.steps, steps);
});

test("a request id that is too long or not visible ASCII is replaced", async () => {
  await using server = await startGrpc(fakeService());
  for (const id of ["a".repeat(129), "a b"]) {
    const { headers } = await rawCall(server.session, encodeFrame(request, false), { "x-request-id": id });
    assert.match(String(headers["x-request-id"]), /^[0-9a-f-]{36}$/);
  }
});

test("a deadline aborts the call and answers at once", async () => {
  const reasons: unknown[] = [];
  await using server = await startGrpc(
    fakeService({
      async unary(_method, _request, call) {
        assert.ok(call.deadline !== undefined && call.deadline > Date.now() - 1000);
        call.signal.addEventListener("abort", () => reasons.push(call.signal.reason));
        return new Promise(() => {});
      },
    }),
  );
  const answer = await rawCall(server.session, encodeFrame(request, false), { "grpc-timeout": "20m" });
  assert.equal(statusOf(answer), status.DEADLINE_EXCEEDED);
  assert.ok(reasons[0] instanceof LanceError && reasons[0].is("DeadlineExceeded"));
  for (const timeout of ["1", "", "123456789S", "-1S", "1d"]) {
    const refused = await rawCall(server.session, encodeFrame(request, false), { "grpc-timeout": timeout });
    assert.equal(statusOf(refused), status.INVALID_ARGUMENT, timeout);
  }
});

test("a cancelled call aborts its signal", async () => {
  const begun = Promise.withResolvers<Call>();
  await using server = await startGrpc(
    fakeService({
      unary(_method, _request, call) {
        begun.resolve(call);
        return new Promise(() => {});
      },
    }),
  );
  const headers = { ":method": "POST", ":path": pathOfMethod(METHODS.describeTable) };
  const stream = server.session.request({ ...headers, "content-type": "application/grpc" });
  stream.on("error", () => {});
  stream.end(encodeFrame(request, false));
  const { signal } = await begun.promise;
  const aborted = once(signal, "abort");
  stream.close(constants.NGHTTP2_CANCEL);
  await aborted;
  assert.ok(signal.reason instanceof LanceError);
});

test("the number of messages must be one, and whole", async () => {
  await using server = await startGrpc(fakeService());
  const frame = encodeFrame(request, false);
  const cases: [string, Buffer | undefined, number][] = [
    ["none", undefined, status.UNIMPLEMENTED],
    ["two", Buffer.concat([frame, frame]), status.UNIMPLEMENTED],
    ["cut in the head", frame.subarray(0, 3), status.INTERNAL],
    ["cut in the body", frame.subarray(0, 7), status.INTERNAL],
    ["unknown flag", Buffer.from([2, 0, 0, 0, 0]), status.INTERNAL],
    ["flag without encoding", encodeFrame(gzipSync(request), true), status.INTERNAL],
    ["not a message", encodeFrame(Buffer.from([0xff, 0xff]), false), status.INVALID_ARGUMENT],
    ["empty", encodeFrame(new Uint8Array(0), false), status.OK],
  ];
  for (const [name, body, expected] of cases) {
    assert.equal(statusOf(await rawCall(server.session, body)), expected, name);
  }
});

test("gzip works both ways", async () => {
  const location = "s3://bucket/".repeat(1000);
  await using server = await startGrpc(
    fakeService({
      unary: async (_method, message) =>
        create(DescribeTableResponseSchema, {
          location,
          table: (message as unknown as { id: string[] }).id[0],
        }),
    }),
  );
  const packed = encodeFrame(gzipSync(request), true);
  const plain = await rawCall(server.session, packed, { "grpc-encoding": "gzip" });
  assert.equal(statusOf(plain), 0);
  assert.equal(plain.headers["grpc-encoding"], undefined);
  assert.ok(plain.body.length > location.length);
  const both = await rawCall(server.session, packed, {
    "grpc-encoding": "gzip",
    "grpc-accept-encoding": "identity, gzip",
  });
  assert.equal(both.headers["grpc-encoding"], "gzip");
  assert.equal(both.body[0], 1);
  assert.ok(both.body.length < 500);
  const { response } = await callUnary(server.client, { id: ["x"] }, new Metadata());
  assert.equal(response?.["location"], location);
  assert.equal(response?.["table"], "x");
});

test("the size limit holds for declared lengths and for what gzip hides", async () => {
  await using server = await startGrpc(fakeService(), { maxMessageBytes: 1000 });
  const declared = Buffer.from([0, 0, 0, 3, 233]);
  assert.equal(statusOf(await rawCall(server.session, declared)), status.RESOURCE_EXHAUSTED);
  const bomb = encodeFrame(gzipSync(Buffer.alloc(100_000)), true);
  const answer = await rawCall(server.session, bomb, { "grpc-encoding": "gzip" });
  assert.equal(statusOf(answer), status.RESOURCE_EXHAUSTED);
  const broken = encodeFrame(Buffer.from("not gzip"), true);
  assert.equal(statusOf(await rawCall(server.session, broken, { "grpc-encoding": "gzip" })), status.INTERNAL);
  const { error } = await callUnary(server.client, { id: ["x".repeat(2000)] }, new Metadata());
  assert.equal(error?.code, status.RESOURCE_EXHAUSTED);
});

test("the call of a long message starts in a later turn than its decoding", async () => {
  let turns = 0;
  const pace = { enter: () => false, turn: async () => void turns++, noteConnection() {} };
  const started: number[] = [];
  const service = fakeService({
    async unary() {
      started.push(turns);
      return create(DescribeTableResponseSchema);
    },
  });
  await using server = await startGrpc(service, { pace });
  await callUnary(server.client, { id: ["a"] }, new Metadata());
  await callUnary(server.client, { id: ["a", "b".repeat(40_000)] }, new Metadata());
  assert.deepEqual(started, [1, 3]);
});

test("an unpacked message counts for the memory of requests until its call ends, and is unpacked no further than there is room", async () => {
  const budget = createByteBudget(100_000);
  const { service, begun, answer } = pausedService();
  await using server = await startGrpc(service, { budget });
  const packed = (bytes: number) => encodeFrame(gzipSync(describeIn({ filler: "x".repeat(bytes) })), true);
  const gzip = { "grpc-encoding": "gzip" };
  const running = rawCall(server.session, packed(80_000), gzip);
  await begun;
  assert.ok(budget.held > 80_000 - FREE_BYTES, `${budget.held}`);
  assert.equal(statusOf(await rawCall(server.session, packed(80_000), gzip)), status.RESOURCE_EXHAUSTED);
  answer();
  assert.equal(statusOf(await running), status.OK);
  assert.equal(budget.held, 0);
});

function describeIn(context: Record<string, string>): Uint8Array {
  return toBinary(DescribeTableRequestSchema, create(DescribeTableRequestSchema, { id: ["t"], context }));
}
