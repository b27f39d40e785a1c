import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  connect as connectHttp2,
  createServer as createHttp2Server,
  type ServerHttp2Session,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { onTestFinished, test, vi } from "vitest";
import {
  app,
  exchange,
  JSON_TYPE,
  logged,
  open,
  operations,
  piece,
  post,
  server,
  textOf,
  useRestServer,
} from "../../../test/fixtures/wires/rest.ts";
import { createSlowList } from "../../../test/support/slow-list.ts";
import { steady } from "../../../test/support/steady.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";

useRestServer();

test("an answer is JSON with its length and the request's id", async () => {
  operations.unary = async (request, call) => {
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

test("a long answer is sent like a short one", async () => {
  const location = "é".repeat(600_000);
  operations.unary = async () => ({ location });
  const { status, headers, text } = await post("/v1/table/t/describe", "{}");
  assert.equal(status, 200);
  assert.equal(JSON.parse(text).location, location);
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["content-length"], String(Buffer.byteLength(text)));
});

const NAMES = Array.from({ length: 60_000 }, (_, i) => `${"é".repeat(20)}${i}`);
const LIST = JSON.stringify({ namespaces: NAMES });

test("a long list is sent in pieces, with its length", async () => {
  operations.unary = async () => ({ namespaces: NAMES });
  const { status, headers, text } = await exchange(open("GET", "/v1/namespace/$/list"));
  assert.equal(status, 200);
  assert.equal(text, LIST);
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["content-length"], String(Buffer.byteLength(LIST)));
  assert.equal(headers["transfer-encoding"], undefined);
  const [head] = (await once(open("HEAD", "/v1/namespace/$/list").end(), "response")) as [IncomingMessage];
  assert.equal(head.headers["content-length"], String(Buffer.byteLength(LIST)));
  assert.equal(await textOf(head), "");
});

test("a long list is encoded no further once its client has left", async () => {
  let call: Call | undefined;
  const slow = createSlowList(() => call?.signal.aborted === true);
  operations.unary = async (_request, given) => {
    call = given;
    return { tables: slow.list };
  };
  const request = open("GET", "/v1/table");
  request.on("error", () => {}).end();
  await slow.begun;
  request.destroy();
  await once((call as unknown as Call).signal, "abort");
  const { steps } = slow;
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  assert.equal(slow.steps, steps);
});

test("a long list goes to a client that still sends", async () => {
  operations.unary = async () => ({ namespaces: NAMES });
  const request = open("GET", "/v1/namespace/$/list", { "content-length": "1000000" });
  request.flushHeaders();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  assert.equal(response.headers.connection, "close");
  assert.equal(await textOf(response), LIST);
  request.destroy();
});

test("a long list waits for its reader, and no deadline ends it", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const namespaces = Array.from({ length: 10 }, () => NAMES).flat();
  operations.unary = async () => ({ namespaces });
  const sending = once(server, "request");
  const request = open("GET", "/v1/namespace/$/list", { "x-request-timeout-ms": "1000" });
  const [response] = (await once(request.end(), "response")) as [IncomingMessage];
  const [, sender] = (await sending) as [unknown, ServerResponse];
  await steady(() => response.socket.bytesRead);
  assert.ok(sender.writableLength < 1024 * 1024, `${sender.writableLength} bytes wait`);
  assert.equal(sender.writableEnded, false);
  vi.advanceTimersByTime(2000);
  assert.deepEqual(JSON.parse(await textOf(response)), { namespaces });
});

test("an empty answer has neither a body nor a content type", async () => {
  operations.unary = async () => ({});
  const { status, headers, text } = await post("/v1/table/t/exists", "null");
  assert.deepEqual([status, text], [200, ""]);
  assert.equal(headers["content-length"], "0");
  assert.equal(headers["content-type"], undefined);
});

test("HEAD is answered like GET, without the body", async () => {
  operations.unary = async () => ({ namespaces: ["n"] });
  const request = open("HEAD", "/v1/namespace/$/list");
  const [response] = (await once(request.end(), "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  assert.equal(response.headers["content-length"], String('{"namespaces":["n"]}'.length));
  assert.equal(await textOf(response), "");
});

test("an error has both shapes, its headers and its status", async () => {
  operations.unary = async () => {
    throw new LanceError("Throttling", "slow down", { headers: { "retry-after": "1" }, detail: "more" });
  };
  const { status, headers, text } = await post("/v1/table/t/describe?x=1", undefined, {});
  assert.equal(status, 429);
  assert.equal(headers["retry-after"], "1");
  assert.match(String(headers["x-request-id"]), /^[0-9a-f-]{36}$/);
  assert.deepEqual(JSON.parse(text), {
    error: "slow down",
    code: 21,
    kind: "Throttling",
    type: "/errors/throttling",
    title: "Throttling",
    status: 429,
    detail: "more",
    instance: "/v1/table/t/describe",
  });
});

test("an unknown error is opaque and logged, and so is an answer that cannot be sent", async () => {
  operations.unary = async () => {
    throw new TypeError("a secret");
  };
  const failed = await post("/v1/table/t/describe", "{}");
  assert.equal(failed.status, 500);
  assert.ok(!failed.text.includes("secret"));
  assert.match(logged.at(-1) ?? "", /a secret/);
  operations.unary = async (_request, call) => {
    call.responseHeaders["x-bad"] = "a\nb";
    return {};
  };
  assert.equal((await post("/v1/table/t/describe", "{}")).status, 500);
});

test("404, 405 and 415 are JSON", async () => {
  operations.unary = async () => ({});
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

test("a client that leaves aborts the signal, and so does its own deadline", async () => {
  const running = () =>
    new Promise<AbortSignal>((started) => {
      operations.unary = (_request, { signal }) => new Promise(() => started(signal));
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
    operations.unary = async () => ({ location: "x" });
    assert.deepEqual(await ask("/v1/table/t/describe", "{}"), {
      status: 200,
      text: '{"location":"x","properties":{}}',
    });
    assert.equal((await ask("/v1/table/t/describe", Buffer.alloc(1_000_000))).status, 413);
    operations.upload = async () => {
      throw new LanceError("TableAlreadyExists", "there");
    };
    assert.equal((await ask("/v1/table/t/create", Buffer.alloc(1_000_000))).status, 409);
    operations.download = async function* () {
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
