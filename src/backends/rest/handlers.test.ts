import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { type Answer, callOf, sendJson } from "../../../test/fixtures/upstreams/rest.ts";
import { upstreamOf } from "../../../test/fixtures/upstreams/upstream.ts";
import { LanceDbService, type ReadBlobResponse } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";

const { readBlob } = LanceDbService.method;
type Download = (request: unknown, call: unknown) => AsyncIterable<ReadBlobResponse>;

/** Reads a blob through an upstream that answers as given. */
async function read(answer: Answer, headers: Readonly<Record<string, string>> = {}) {
  const upstream = await upstreamOf(answer);
  const call = callOf(readBlob, { headers });
  const handler = upstream.backend.extensions?.readBlob as unknown as Download;
  const pieces: ReadBlobResponse[] = [];
  const result = handler(create(readBlob.input, { column: "b", rowId: 7n }), call);
  for await (const piece of result) pieces.push(piece);
  return {
    pieces: pieces.map(({ data }) => Buffer.from(data?.data ?? []).toString()),
    contentType: pieces[0]?.data?.contentType,
    told: call.responseHeaders,
    bytes: call.responseBytes,
    seen: upstream.seen[0],
  };
}

test("a range goes to the upstream, and the part that it answers with comes back", async () => {
  const part = {
    "accept-ranges": "bytes",
    "content-length": "3",
    "content-range": "bytes 1-3/9",
    "content-type": "application/octet-stream",
    "x-lancedb-version": "4",
  };
  const { pieces, contentType, told, bytes, seen } = await read(
    (response) => response.writeHead(206, part).end("bcd"),
    { range: "bytes=1-3" },
  );
  assert.deepEqual([seen?.headers["range"], seen?.headers.accept], ["bytes=1-3", "application/octet-stream"]);
  assert.deepEqual([pieces.join(""), contentType, bytes], ["bcd", "application/octet-stream", 3]);
  const { "accept-ranges": ranges, "content-range": range, "x-lancedb-version": version } = told;
  assert.deepEqual([ranges, range, version], ["bytes", "bytes 1-3/9", "4"]);
});

test("a part that does not say which one it is does not pass for the whole blob, and leaves its connection", async () => {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const nameless: Answer = (response) => {
    response.on("close", resolve);
    response.writeHead(206, { "content-type": "application/octet-stream" }).write("bcd");
  };
  await assert.rejects(read(nameless, { range: "bytes=1-3" }), (error) =>
    isLanceError(error, "ServiceUnavailable"),
  );
  await closed;
});

test("several ranges, and one with a condition, are the whole blob", async () => {
  const headers: Record<string, string>[] = [
    { range: "bytes=0-1,3-4" },
    { range: "bytes=1-3", "if-range": '"1"' },
  ];
  for (const each of headers) {
    const { seen } = await read((response) => response.end("abcdefghi"), each);
    assert.deepEqual([seen?.headers["range"], seen?.headers["if-range"]], [undefined, undefined]);
  }
});

test("a blob without a range is plain bytes, not Arrow", async () => {
  const { pieces, contentType, told, seen } = await read((response) => response.end("ARROW1"));
  assert.deepEqual([pieces.join(""), contentType], ["ARROW1", "application/octet-stream"]);
  assert.deepEqual([told["content-range"], seen?.headers["range"]], [undefined, undefined]);
});

test("an empty blob has a message, and a row without a blob has none", async () => {
  assert.deepEqual((await read((response) => response.writeHead(200).end())).pieces, [""]);
  assert.deepEqual((await read((response) => response.writeHead(204).end())).pieces, []);
});

test("a range outside of the blob has the upstream's size of it", async () => {
  const outside: Answer = (response) => {
    response.setHeader("content-range", "bytes */9");
    sendJson(response, { error: "the blob has 9 bytes" }, 416);
  };
  await assert.rejects(
    read(outside, { range: "bytes=20-" }),
    (error) => isLanceError(error, "RangeNotSatisfiable") && error.headers["content-range"] === "bytes */9",
  );
});

test("a reader that leaves before the first byte leaves the upstream's connection", async () => {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const upstream = await upstreamOf((response) => {
    response.on("close", resolve);
    response.writeHead(200).write("the first of many bytes");
  });
  const handler = upstream.backend.extensions?.readBlob as unknown as Download;
  const result = handler(create(readBlob.input, { column: "b", rowId: 7n }), callOf(readBlob));
  for await (const _ of result) break;
  await closed;
});
