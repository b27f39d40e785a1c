import assert from "node:assert/strict";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { pino } from "pino";
import { describe, it } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  DescribeTableRequestSchema,
  DescribeTableResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { type Call, createCall } from "../../namespace/call/call.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { credentialsIn, resolveRequest, shareContext } from "./resolve.ts";

const call = (headers: Record<string, string> = {}): Call =>
  createCall({
    method: LanceNamespaceService.method.describeTable,
    protocol: "rest",
    requestId: "r",
    headers,
    signal: new AbortController().signal,
    deadline: undefined,
    accept: undefined,
    log: pino({ level: "silent" }),
  });

function resolve(
  init: MessageInitShape<typeof DescribeTableRequestSchema>,
  headers?: Record<string, string>,
): Call {
  const settled = call(headers);
  resolveRequest(create(DescribeTableRequestSchema, init), settled);
  return settled;
}

describe("resolveRequest", () => {
  it("resolves the id from the route, the body, or both when they agree", () => {
    assert.deepEqual(resolve({ identifier: "a$b" }).id, ["a", "b"]);
    assert.deepEqual(resolve({ id: ["a", "b"] }).id, ["a", "b"]);
    assert.deepEqual(resolve({ identifier: "a.b", delimiter: ".", id: ["a", "b"] }).id, ["a", "b"]);
    assert.deepEqual(resolve({ identifier: "$" }).id, []);
  });

  it("writes the resolved id back to the request", () => {
    const request = create(DescribeTableRequestSchema, { identifier: "a$b" });
    resolveRequest(request, call());
    assert.deepEqual(request.id, ["a", "b"]);
  });

  it("refuses a route and a body that name different objects", () => {
    assert.throws(
      () => resolve({ identifier: "a$b", id: ["a", "c"] }),
      (error) => isLanceError(error, "InvalidInput") && /\["a","c"\].*\["a","b"\]/.test(error.message),
    );
  });

  it("reads a + of the route as the space that the body's list has", () => {
    assert.deepEqual(resolve({ identifier: "a+b", id: ["a b"] }).id, ["a b"]);
    assert.deepEqual(resolve({ identifier: "a+b" }).id, ["a+b"]);
    const request = create(DescribeTableRequestSchema, { identifier: "a+b", id: ["a b"] });
    resolveRequest(request, call());
    assert.deepEqual([request.id, request.identifier], [["a b"], ""]);
  });

  it("prefers the credentials of the headers to those of the body", () => {
    const identity = { apiKey: "body", authToken: "body" };
    assert.deepEqual(resolve({ identity }).identity, { apiKey: "body", authToken: "body" });
    const headers = { "x-api-key": "head", authorization: "bearer head" };
    assert.deepEqual(resolve({ identity }, headers).identity, { apiKey: "head", authToken: "head" });
  });

  it("makes `header.*` entries of the context headers, but never over one that was sent", () => {
    const context = { "header.X-Trace": "context", "header.x-sent": "context", other: "stays" };
    const { headers } = resolve({ context }, { "x-sent": "wire" });
    assert.equal(headers["x-trace"], "context");
    assert.equal(headers["x-sent"], "wire");
    assert.equal(headers["other"], undefined);
  });

  it("takes no entry of the context for a header of the connection, of a proxy or of the gateway", () => {
    const names = [
      "host",
      "Connection",
      "te",
      "transfer-encoding",
      "content-length",
      "content-type",
      "x-forwarded-for",
      "x-request-id",
      "grpc-timeout",
      "sec-fetch-site",
      ":authority",
    ];
    const context = Object.fromEntries(names.map((name) => [`header.${name}`, "forged"]));
    assert.deepEqual(Object.keys(resolve({ context }).headers), []);
    const named = resolve({ context: { "header.x-hop": "forged" } }, { connection: "close, X-Hop" });
    assert.deepEqual(Object.keys(named.headers), ["connection"]);
  });

  it("takes no headers of the context that are longer than those of HTTP", () => {
    const context = (size: number) => ({
      "header.x-a": "a".repeat(size),
      "header.x-b": "b",
      other: "c".repeat(20_000),
    });
    assert.equal(resolve({ context: context(16_000) }).headers["x-a"]?.length, 16_000);
    assert.throws(() => resolve({ context: context(16_378) }), /16384 characters/);
  });

  it("ignores context entries that are not header names", () => {
    assert.deepEqual(
      Object.keys(resolve({ context: { "header.bad name": "x", "header.a\nb": "y" } }).headers),
      [],
    );
  });
});

describe("credentialsIn", () => {
  it("reads the spaces before a token once", () => {
    const spaces = " ".repeat(500_000);
    const tokenIn = (authorization: string) => credentialsIn({ authorization }).authToken;
    assert.deepEqual([tokenIn(`Bearer ${spaces}t 1`), tokenIn(`Bearer ${spaces}\n`)], ["t 1", undefined]);
  });
});

describe("shareContext", () => {
  it("makes the headers of the answer and the context of the response say the same", () => {
    const settled = call();
    settled.responseHeaders["x-upstream"] = "up";
    const response = create(DescribeTableResponseSchema, { context: { "header.X-Made": "made", note: "n" } });
    shareContext(response, settled);
    assert.deepEqual({ ...settled.responseHeaders }, { "x-upstream": "up", "x-made": "made" });
    assert.equal(response.context["header.x-upstream"], "up");
    assert.equal(response.context["note"], "n");
  });
});
