import assert from "node:assert/strict";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { Metadata, status } from "@grpc/grpc-js";
import { test } from "vitest";
import { callUnary, fakeService, rawCall, startGrpc, statusOf } from "../../../test/fixtures/wires/grpc.ts";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { ErrorResponseSchema } from "../../gen/lance/namespace/v1/common_pb.ts";
import { DescribeTableRequestSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { encodeFrame } from "./frame.ts";

const request = toBinary(DescribeTableRequestSchema, create(DescribeTableRequestSchema, { id: ["a", "b"] }));

test("a Lance error becomes a status with the error response in its details", async () => {
  await using server = await startGrpc(
    fakeService({
      async unary() {
        throw new LanceError("TableNotFound", "no täble 100%", {
          detail: "looked",
          headers: { "retry-after": "7" },
        });
      },
    }),
  );
  const metadata = new Metadata();
  metadata.set("x-request-id", "r1");
  const { error } = await callUnary(server.client, {}, metadata);
  assert.equal(error?.code, status.NOT_FOUND);
  assert.equal(error?.details, "no täble 100%");
  assert.deepEqual(error?.metadata.get("retry-after"), ["7"]);
  const [details] = error?.metadata.get("grpc-status-details-bin") ?? [];
  const decoded = fromBinary(StatusSchema, details as Buffer);
  assert.equal(decoded.code, status.NOT_FOUND);
  const [any] = decoded.details;
  const response = any && anyUnpack(any, ErrorResponseSchema);
  assert.equal(response?.code, 4);
  assert.equal(response?.error, "no täble 100%");
  assert.equal(response?.detail, "looked");
  assert.equal(response?.status, 404);
  assert.equal(response?.type, "/errors/not-found-error");
  assert.equal(response?.kind, "TableNotFound");
  assert.equal(response?.instance, "r1");
  assert.equal(server.lines.length, 0);
});

test("an error is sent in headers alone, and long texts are cut", async () => {
  await using server = await startGrpc(
    fakeService({
      async unary() {
        const [text, detail] = ["é".repeat(100_000), "x".repeat(100_000)];
        throw new LanceError("InvalidInput", text, { detail, instance: detail });
      },
    }),
  );
  const answer = await rawCall(server.session, encodeFrame(request, false));
  assert.equal(answer.headers["grpc-status"], "3");
  assert.equal(answer.trailers["grpc-status"], undefined);
  assert.ok(JSON.stringify(answer.headers).length < 8192);
});

test("the details of a status have no padding, as gRPC wants its binary metadata", async () => {
  let message = "";
  await using server = await startGrpc(
    fakeService({
      async unary() {
        message += "x";
        throw new LanceError("TableNotFound", message);
      },
    }),
  );
  for (let length = 0; length < 4; length++) {
    const { headers } = await rawCall(server.session, encodeFrame(request, false));
    assert.match(String(headers["grpc-status-details-bin"]), /^[A-Za-z0-9+/]+$/);
  }
});

test("headers of a failed call come before its trailers", async () => {
  await using server = await startGrpc(
    fakeService({
      async unary(_method, _request, call) {
        call.responseHeaders["x-answer"] = "yes";
        call.responseTrailers = { "x-end": "no", "grpc-status": "0" };
        throw new LanceError("TableNotFound", "no table");
      },
    }),
  );
  const { headers, trailers } = await rawCall(server.session, encodeFrame(request, false));
  assert.equal(headers["x-answer"], "yes");
  assert.equal(headers["grpc-status"], undefined);
  assert.equal(trailers["grpc-status"], "5");
  assert.equal(trailers["x-end"], "no");
  assert.match(String(trailers["x-request-id"]), /^[0-9a-f-]{36}$/);
});

test("an unknown error is logged with the request id and shown opaque", async () => {
  await using server = await startGrpc(
    fakeService({
      async unary() {
        throw new TypeError("secret path /var/x");
      },
    }),
  );
  const { error } = await callUnary(server.client, {}, new Metadata());
  assert.equal(error?.code, status.INTERNAL);
  assert.doesNotMatch(error?.details ?? "", /secret/);
  const [line] = server.lines;
  assert.match(JSON.stringify(line), /secret path/);
  assert.equal(line?.["requestId"], error?.metadata.get("x-request-id")[0]);
});

test("an unknown method is unimplemented; other content types and methods are refused", async () => {
  await using server = await startGrpc(fakeService());
  const body = encodeFrame(request, false);
  assert.equal(statusOf(await rawCall(server.session, body, { ":path": "/a.B/C" })), status.UNIMPLEMENTED);
  const json = await rawCall(server.session, body, { "content-type": "application/grpc+json" });
  assert.equal(json.headers[":status"], 415);
  const get = await rawCall(server.session, undefined, { ":method": "GET" });
  assert.equal(get.headers[":status"], 405);
  for (const type of ["application/grpc+proto", "application/grpc; charset=utf-8"]) {
    assert.equal(statusOf(await rawCall(server.session, body, { "content-type": type })), 0);
  }
});

test("an unknown encoding is unimplemented and names those that are known", async () => {
  await using server = await startGrpc(fakeService());
  const answer = await rawCall(server.session, encodeFrame(request, true), { "grpc-encoding": "br" });
  assert.equal(statusOf(answer), status.UNIMPLEMENTED);
  assert.equal(answer.headers["grpc-accept-encoding"], "identity,gzip");
});
