import assert from "node:assert/strict";
import { once } from "node:events";
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  type Server,
  request as send,
} from "node:http";
import {
  connect as connectHttp2,
  createServer as createHttp2Server,
  type ServerHttp2Session,
} from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import fastify from "fastify";
import { pino } from "pino";
import { afterAll, beforeAll, test } from "vitest";
import { steady } from "../../test/support/steady.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../namespace/call.ts";
import { isLanceError, LanceError } from "../namespace/errors.ts";
import type { Service } from "../namespace/service.ts";
import { createTranscoder } from "../transcode/transcoder.ts";
import { httpWires } from "./http-wires.ts";
import { createTargetRewrite } from "./rest/target-rewrite.ts";

const MAX_BYTES = 4096;
const JSON_TYPE = { "content-type": "application/json" };

type Fields = Record<string, unknown>;

/** Behaviour of the service; each test sets what it needs. */
let unary: (request: Fields, call: Call) => Promise<Fields> = async () => ({});
let upload: (request: Fields, data: AsyncIterable<Uint8Array>, call: Call) => Promise<Fields> =
  async () => ({});
let download: (request: Fields, call: Call) => AsyncIterable<Fields> = async function* () {};

const answer = (method: DescMethod, init: Fields): Message => create(method.output, init as never);

const service: Service = {
  unary: async (method, request, call) => answer(method, await unary(request as never, call)),
  upload: async (method, request, data, call) => answer(method, await upload(request as never, data, call)),
  async *download(method, request, call) {
    for await (const init of download(request as never, call)) yield answer(method, init);
  },
};

const logged: string[] = [];
const transcoders = [createTranscoder([LanceNamespaceService])];
const rewrite = createTargetRewrite(transcoders);
const app = fastify({ rewriteUrl: ({ url = "" }) => rewrite(url) });
app.register(httpWires, {
  rpcs: [],
  transcoders,
  service,
  log: pino({ level: "error" }, { write: (line: string) => void logged.push(line) }),
  maxMessageBytes: MAX_BYTES,
});

let server: Server;
let port: number;

beforeAll(async () => {
  await app.ready();
  server = createServer(app.routing).listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
});

afterAll(() => server.close().closeAllConnections());

function open(method: string, path: string, headers: Record<string, string> = {}): ClientRequest {
  return send({ port, host: "127.0.0.1", method, path, headers, agent: false });
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return text;
}

async function exchange(request: ClientRequest, body?: string | Buffer) {
  const responded = once(request, "response");
  request.end(body);
  const [response] = (await responded) as [IncomingMessage];
  const text = await textOf(response);
  return { status: response.statusCode, headers: response.headers, text };
}

const post = (path: string, body?: string | Buffer, headers: Record<string, string> = JSON_TYPE) =>
  exchange(open("POST", path, headers), body);

test("an answer is JSON with its length and the request's id", async () => {
  unary = async (request, call) => {
    call.responseHeaders["x-version"] = "3";
    assert.equal(call.headers["x-api-key"], "secret");
    assert.equal(call.accept, "*/*");
    return { location: request["identifier"] };
  };
  const headers = { ...JSON_TYPE, "x-request-id": "mine", "x-api-key": "secret", accept: "*/*" };
  const { status, headers: sent, text } = await post("//v1/table/a%24b/describe///", "{}", headers);
  assert.equal(status, 200);
  assert.equal(text, '{"location":"a$b","properties":{}}');
  assert.equal(sent["content-type"], "application/json");
  assert.equal(sent["content-length"], String(text.length));
  assert.equal(sent["x-request-id"], "mine");
  assert.equal(sent["x-version"], "3");
});

test("an empty answer has neither a body nor a content type", async () => {
  unary = async () => ({});
  const { status, headers, text } = await post("/v1/table/t/exists", "null");
  assert.deepEqual([status, text], [200, ""]);
  assert.equal(headers["content-length"], "0");
  assert.equal(headers["content-type"], undefined);
});

test("HEAD is answered like GET, without the body", async () => {
  unary = async () => ({ namespaces: ["n"] });
  const request = open("HEAD", "/v1/namespace/$/list");
  const [response] = (await once(request.end(), "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  assert.equal(response.headers["content-length"], String('{"namespaces":["n"]}'.length));
  assert.equal(await textOf(response), "");
});

test("an error has both shapes, its headers and its status", async () => {
  unary = async () => {
    throw new LanceError("Throttling", "slow down", { headers: { "retry-after": "1" }, detail: "more" });
  };
  const { status, headers, text } = await post("/v1/table/t/describe?x=1", undefined, {});
  assert.equal(status, 429);
  assert.equal(headers["retry-after"], "1");
  assert.match(String(headers["x-request-id"]), /^[0-9a-f-]{36}$/);
  assert.deepEqual(JSON.parse(text), {
    error: "slow down",
    code: 21,
    type: "/errors/throttling",
    title: "Throttling",
    status: 429,
    detail: "more",
    instance: "/v1/table/t/describe",
  });
});

test("an unknown error is opaque and logged, and so is an answer that cannot be sent", async () => {
  unary = async () => {
    throw new TypeError("a secret");
  };
  const failed = await post("/v1/table/t/describe", "{}");
  assert.equal(failed.status, 500);
  assert.ok(!failed.text.includes("secret"));
  assert.match(logged.at(-1) ?? "", /a secret/);
  unary = async (_request, call) => {
    call.responseHeaders["x-bad"] = "a\nb";
    return {};
  };
  assert.equal((await post("/v1/table/t/describe", "{}")).status, 500);
});

test("404, 405 and 415 are JSON", async () => {
  unary = async () => ({});
  const missing = await exchange(open("GET", "/"));
  assert.deepEqual([missing.status, JSON.parse(missing.text).code], [404, 0]);
  const method = await exchange(open("DELETE", "/v1/table/t/describe"));
  assert.deepEqual([method.status, method.headers.allow], [405, "POST"]);
  const type = await post("/v1/table/t/describe", "x", { "content-type": "text/plain" });
  assert.deepEqual([type.status, JSON.parse(type.text).code], [415, 13]);
  const chunked = { "content-type": "text/plain", "transfer-encoding": "chunked" };
  assert.equal((await post("/v1/table/t/describe", "x", chunked)).status, 415);
  const odd = { ...chunked, "content-type": "application/octet-stream" };
  assert.equal((await post("/v1/table/t/describe", "", odd)).status, 200);
  // A form's media type would bypass the consent that browsers ask for.
  assert.equal((await post("/v1/table/t/describe", "", chunked)).status, 415);
  assert.equal((await post("/v1/table/t/describe", "{}", {})).status, 200);
  assert.equal((await post("/v1/table/t/describe", "{}", { "content-encoding": "compress" })).status, 415);
  const charset = { "content-type": "Application/JSON; charset=utf-8" };
  assert.equal((await post("/v1/table/t/describe", "{}", charset)).status, 200);
});

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
  unary = async (request) => ({ location: (request["id"] as string[]).join("/") });
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

test("an upload is handed on in pieces, decoded, with its content type", async () => {
  upload = async (request, data) => {
    let size = 0n;
    for await (const piece of data) size += BigInt(piece.length);
    return { location: (request["data"] as { contentType: string }).contentType, version: size };
  };
  const big = Buffer.alloc(1_000_000, 1);
  const plain = await post("/v1/table/t/create", big, { "content-type": "application/x" });
  assert.deepEqual(JSON.parse(plain.text), { location: "application/x", version: 1_000_000, properties: {} });
  const packed = await post("/v1/table/t/create", gzipSync(big), { "content-encoding": "gzip" });
  assert.equal(JSON.parse(packed.text).version, 1_000_000);
  assert.equal(JSON.parse((await post("/v1/table/t/create", "", {})).text).version, 0);
});

test("an upload that is refused unread is answered, before it ends and after", async () => {
  upload = async () => {
    throw new LanceError("TableAlreadyExists", "there");
  };
  const { status } = await post("/v1/table/t/create", Buffer.alloc(20_000_000));
  assert.equal(status, 409);
  const request = open("POST", "/v1/table/t/create", {
    "transfer-encoding": "chunked",
    expect: "100-continue",
  });
  request.on("error", () => {});
  request.flushHeaders();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 409);
  request.destroy();
});

test("a reader that stops early leaves the answer whole", async () => {
  upload = async (_request, data) => {
    for await (const _piece of data) throw new LanceError("InvalidInput", "bad Arrow");
    return {};
  };
  assert.equal((await post("/v1/table/t/create", Buffer.alloc(20_000_000))).status, 400);
  const packed = gzipSync(Buffer.alloc(20_000_000));
  assert.equal((await post("/v1/table/t/create", packed, { "content-encoding": "gzip" })).status, 400);
});

test("a client that leaves during an upload cancels it", async () => {
  const begun = Promise.withResolvers<void>();
  const failure = new Promise((resolve) => {
    upload = async (_request, data) => {
      try {
        for await (const _piece of data) begun.resolve();
      } catch (thrown) {
        resolve(thrown);
      }
      return {};
    };
  });
  const request = open("POST", "/v1/table/t/create", { "content-length": "100000" });
  request.on("error", () => {});
  request.write("some");
  await begun.promise;
  request.destroy();
  assert.ok(isLanceError(await failure, "Cancelled"));
});

test("a client that leaves aborts the signal, and so does its own deadline", async () => {
  const running = () =>
    new Promise<AbortSignal>((started) => {
      unary = (_request, { signal }) => new Promise(() => started(signal));
    });
  const started = running();
  const request = open("POST", "/v1/table/t/describe");
  request.on("error", () => {});
  request.end("{}");
  const signal = await started;
  request.destroy();
  await once(signal, "abort");
  assert.ok(isLanceError(signal.reason, "Cancelled"));

  const slow = running();
  const late = await post("/v1/table/t/describe", "{}", { "x-request-timeout-ms": "30" });
  assert.equal(late.status, 504);
  assert.ok(isLanceError((await slow).reason, "DeadlineExceeded"));
  assert.equal((await post("/v1/table/t/describe", "{}", { "x-request-timeout-ms": "1s" })).status, 400);
});

const piece = (text: string) => ({
  data: { contentType: "application/vnd.apache.arrow.file", data: Buffer.from(text) },
});

test("a download has the first message's content type and all bytes", async () => {
  download = async function* (_request, call) {
    call.responseHeaders["x-version"] = "1";
    yield piece("ab");
    yield piece("cd");
  };
  const { headers, text } = await post("/v1/table/t/query", "{}");
  assert.equal(text, "abcd");
  assert.equal(headers["content-type"], "application/vnd.apache.arrow.file");
  assert.equal(headers["x-version"], "1");
});

test("a download that fails has its status before the first byte and no end after it", async () => {
  // biome-ignore lint/correctness/useYield: it fails before it has anything to yield.
  download = async function* () {
    throw new LanceError("TableNotFound", "t");
  };
  assert.equal((await post("/v1/table/t/query", "{}")).status, 404);
  download = async function* () {
    yield piece("ab");
    throw new LanceError("Internal", "lost");
  };
  await assert.rejects(post("/v1/table/t/query", "{}"), { code: "ECONNRESET" });
});

test("a download waits for its reader, and ends with it", async () => {
  let yielded = 0;
  const closed = new Promise<void>((resolve) => {
    download = async function* () {
      try {
        for (; yielded < 1000; yielded++) yield { data: { data: Buffer.alloc(1_000_000) } };
      } finally {
        resolve();
      }
    };
  });
  const request = open("POST", "/v1/table/t/query");
  request.end("{}");
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const ahead = await steady(() => yielded);
  assert.ok(ahead < 100, `${ahead}`);
  response.destroy();
  await closed;
});

test("HTTP/2 has the same answers, and a failed download resets its stream", async () => {
  const http2 = createHttp2Server(app.routing as never).listen(0, "127.0.0.1");
  await once(http2, "listening");
  const accepted = once(http2, "session");
  const session = connectHttp2(`http://127.0.0.1:${(http2.address() as AddressInfo).port}`);
  const ask = async (path: string, body: string | Buffer) => {
    const stream = session.request({ ":method": "POST", ":path": path });
    const responded = once(stream, "response");
    stream.end(body);
    const [headers] = await responded;
    let text = "";
    for await (const chunk of stream.setEncoding("utf8")) text += chunk;
    return { status: headers[":status"], text };
  };
  try {
    unary = async () => ({ location: "x" });
    assert.deepEqual(await ask("/v1/table/t/describe", "{}"), {
      status: 200,
      text: '{"location":"x","properties":{}}',
    });
    assert.equal((await ask("/v1/table/t/describe", Buffer.alloc(1_000_000))).status, 413);
    upload = async () => {
      throw new LanceError("TableAlreadyExists", "there");
    };
    assert.equal((await ask("/v1/table/t/create", Buffer.alloc(1_000_000))).status, 409);
    download = async function* () {
      yield piece("ab");
      throw new LanceError("Internal", "lost");
    };
    await assert.rejects(ask("/v1/table/t/query", "{}"), { code: "ERR_HTTP2_STREAM_ERROR" });
  } finally {
    session.destroy();
    // On a busy machine the server may not notice that its client has disconnected, and an open session keeps the
    // process alive.
    const [peer] = (await accepted) as [ServerHttp2Session];
    peer.destroy();
    http2.close();
  }
});
