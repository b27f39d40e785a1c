import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { test } from "vitest";
import {
  JSON_TYPE,
  open,
  operations,
  port,
  post,
  textOf,
  useRestServer,
} from "../../../test/fixtures/wires/rest.ts";

useRestServer();

test("a body over the limit is refused by its length before it is read", async () => {
  const request = open("POST", "/v1/table/t/describe", { ...JSON_TYPE, "content-length": "1000000000" });
  request.on("error", () => {});
  request.write("{");
  const [response] = (await once(request, "response")) as [IncomingMessage];
  assert.deepEqual([response.statusCode, response.headers.connection], [413, "close"]);
  assert.equal(JSON.parse(await textOf(response)).code, 13);
  request.destroy();
});

test("a chunked body over the limit is refused, and a sender that never looks up still sees it", async () => {
  const socket = connect(port, "127.0.0.1");
  const size = 8 * 1024 * 1024;
  socket.write("POST /v1/table/t/describe HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
  socket.write(`${size.toString(16)}\r\n`);
  socket.pause();
  await new Promise((resolve) => socket.write(Buffer.alloc(size, 32), resolve));
  socket.write("\r\n0\r\n\r\n");
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) text += chunk;
  assert.match(text, /^HTTP\/1\.1 413 /);
});

test("encoded bodies are decoded within the limit", async () => {
  operations.unary = async (request) => ({ location: (request["id"] as string[]).join("/") });
  const body = '{"id":["a","b"]}';
  for (const [encoding, packed] of [
    ["gzip", gzipSync(body)],
    ["zstd", zstdCompressSync(body)],
    ["identity", body],
  ] as const) {
    const { text } = await post("/v1/table/t/describe", packed, { "content-encoding": encoding });
    assert.equal(JSON.parse(text).location, "a/b");
  }
  const gzip = { "content-encoding": "gzip" };
  const bomb = await post("/v1/table/t/describe", gzipSync(Buffer.alloc(1_000_000, 32)), gzip);
  assert.equal(bomb.status, 413);
  const broken = await post("/v1/table/t/describe", "not gzip", gzip);
  assert.deepEqual([broken.status, JSON.parse(broken.text).error], [400, "request body is not valid gzip"]);
  const cut = await post("/v1/table/t/describe", gzipSync(body).subarray(0, 15), gzip);
  assert.equal(cut.status, 400);
});

test("a byte order mark before a body does not count, as over Connect", async () => {
  operations.unary = async (request) => ({ location: (request["id"] as string[]).join("/") });
  const marked = Buffer.from('\ufeff{"id":["a","b"]}');
  const { text } = await post("/v1/table/t/describe", marked);
  assert.equal(JSON.parse(text).location, "a/b");
  const twice = await post("/v1/table/t/describe", Buffer.from('\ufeff\ufeff{"id":["a","b"]}'));
  assert.equal(twice.status, 400);
});

test("an announced length of several zeros is that of an empty body", async () => {
  operations.unary = async (request) => ({ location: request["identifier"] });
  const headers = { ...JSON_TYPE, "content-length": "00" };
  const { status, text } = await post("/v1/table/t/describe", undefined, headers);
  assert.deepEqual([status, JSON.parse(text).location], [200, "t"]);
});

test("a body whose decoder would need more memory than a window of zstd may have is refused", async () => {
  operations.unary = async () => ({});
  for (const [log, status] of [
    [23, 200],
    [24, 400],
  ] as const) {
    // A frame with a window of 2^log bytes, and a single block, which is not packed (RFC 8878).
    const frame = [0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3, 0b10001, 0, 0, ...Buffer.from("{}")];
    const packed = Buffer.from(frame);
    const answer = await post("/v1/table/t/describe", packed, { "content-encoding": "zstd" });
    assert.equal(answer.status, status, `2^${log} bytes`);
  }
});
