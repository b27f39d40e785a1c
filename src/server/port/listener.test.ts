import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect, createServer as createProxy } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";
import {
  callUnary,
  codecs,
  fakeService,
  METHODS,
  rawCall,
  statusOf,
} from "../../../test/fixtures/wires/grpc.ts";
import { CreateTableRequestSchema, CreateTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { peerOf } from "../../wires/arrival.ts";
import { encodeFrame } from "../../wires/grpc/frame.ts";

const HTTP1 = "GET /v1/x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

test("HTTP/1.1, HTTP/2 and gRPC share the port", async () => {
  await using server = await startServer();
  assert.equal(
    await (await fetch(`${server.url}/v1/x`, { method: "POST", body: "abc" })).text(),
    "rest POST /v1/x 3",
  );
  const session = connectHttp2(server.url);
  const rest = await rawCall(session, Buffer.from("abcd"), {
    ":path": "/v1/y",
    "content-type": "text/plain",
  });
  assert.equal(rest.body.toString(), "rest POST /v1/y 4");
  const grpc = await rawCall(session, encodeFrame(new Uint8Array(0), false));
  assert.equal(statusOf(grpc), 0);
  assert.equal(session.remoteSettings.maxConcurrentStreams, 100);
  session.close();
});

test("probes answer before anything else", async () => {
  await using server = await startServer();
  const probe = async (path: string) => {
    const response = await fetch(server.url + path);
    return [response.status, await response.text()];
  };
  assert.deepEqual(await probe("/healthz"), [200, "ok\n"]);
  assert.deepEqual(await probe("/readyz"), [200, "ok\n"]);
  server.readiness.set(false);
  assert.deepEqual(await probe("/healthz?x=1"), [200, "ok\n"]);
  assert.deepEqual(await probe("/readyz"), [503, "not ready\n"]);
});

test("HTTP/1.1 may come one byte at a time", async () => {
  await using server = await startServer();
  const { socket, received, closed } = rawConnection(server.port);
  for (const character of HTTP1) {
    socket.write(character);
    await turn();
  }
  await closed;
  assert.match(received(), /^HTTP\/1\.1 200 OK[\s\S]*rest GET \/v1\/x 0/);
});

test("closes a connection that begins like the preface and continues otherwise", async () => {
  await using server = await startServer();
  const { socket, received, closed } = rawConnection(server.port);
  await new Promise((resolve) => socket.write("PRI", resolve));
  await turn();
  socket.write(" * HTTP/1.1\r\n\r\n");
  await closed;
  assert.equal(received(), "");
  const put = rawConnection(server.port);
  await new Promise((resolve) => put.socket.write("P", resolve));
  await turn();
  put.socket.write(HTTP1.replace("GET", "UT"));
  await put.closed;
  assert.match(put.received(), /rest PUT/);
});

test("the HTTP/2 preface and all after it may come one byte at a time", async () => {
  await using server = await startServer();
  const proxy = createProxy({ noDelay: true }, (client) => {
    const upstream = connect({ port: server.port, host: "127.0.0.1", noDelay: true });
    upstream.pipe(client);
    client.on("data", async (piece) => {
      client.pause();
      for (const byte of piece) {
        upstream.write(Buffer.from([byte as number]));
        await turn();
      }
      client.resume();
    });
    for (const socket of [client, upstream]) socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const session = connectHttp2(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  const answer = await rawCall(session, encodeFrame(new Uint8Array(0), false));
  assert.equal(statusOf(answer), 0);
  session.destroy();
  proxy.close();
});

test("serves no connection that its client has reset already, because nothing knows its address", async () => {
  const addresses: unknown[] = [];
  await using server = await startServer({
    rest(request, response) {
      addresses.push(peerOf(request.socket).peer);
      response.end();
    },
  });
  // This process accepts the connection only after the other one has reset it.
  execFileSync(process.execPath, [
    "-e",
    `const socket = require("node:net").connect(${server.port}, "127.0.0.1", () => {
      socket.write(${JSON.stringify(HTTP1)});
      socket.resetAndDestroy();
    });`,
  ]);
  await (await fetch(`${server.url}/v1/x`)).text();
  assert.deepEqual(addresses, ["127.0.0.1"]);
});

test("a reset at any stage harms nobody", async () => {
  await using server = await startServer();
  const frames: Buffer[] = [];
  const recorder = createProxy((socket) => {
    socket.on("data", (piece) => frames.push(piece as Buffer));
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => recorder.listen(0, "127.0.0.1", resolve));
  const session = connectHttp2(`http://127.0.0.1:${(recorder.address() as AddressInfo).port}`);
  session.on("error", () => {});
  void rawCall(session, encodeFrame(new Uint8Array(0), false));
  const lastFrame = Buffer.of(0, 0, 5, 0, 1);
  await expect.poll(() => Buffer.concat(frames).includes(lastFrame)).toBe(true);
  session.destroy();
  recorder.close();
  for (const bytes of [Buffer.concat(frames), Buffer.from(HTTP1)]) {
    for (let length = 0; length <= bytes.length; length++) {
      const { socket } = rawConnection(server.port);
      await new Promise((resolve) => socket.on("connect", resolve));
      await new Promise((resolve) => socket.write(bytes.subarray(0, length), resolve));
      if (length % 3 === 0) await turn();
      if (length % 2 === 0) socket.resetAndDestroy();
      else socket.destroy();
    }
  }
  assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
});

test("a connection that says nothing, or half a preface, is closed in time", async () => {
  await using server = await startServer({ firstBytesMs: 50 });
  const silent = rawConnection(server.port);
  const half = rawConnection(server.port);
  half.socket.write("PRI * HT");
  await Promise.all([silent.closed, half.closed]);
});

test("a connection that ends before it is decided is closed", async () => {
  await using server = await startServer();
  const { socket, closed } = rawConnection(server.port);
  socket.end("PRI * HT");
  await closed;
});

test("a connection that asks for a tunnel is closed, even if its client keeps it open", {
  timeout: 60_000,
}, async () => {
  await using server = await startServer();
  const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  socket.write("CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n");
  const [answer] = await once(socket, "data");
  assert.match(String(answer), /^HTTP\/1\.1 405 /);
  socket.write("more");
  await expect.poll(() => server.figures().open).toBe(0);
  socket.destroy();
});

test("slow headers are cut off", { timeout: 60_000 }, async () => {
  await using server = await startServer({ headersMs: 100 });
  const { socket, received, closed } = rawConnection(server.port);
  socket.write("GET / HTTP/1.1\r\nhost: a\r\n");
  await closed;
  assert.match(received(), /^HTTP\/1\.1 408/);
});

test("a large upload is not held up by the session's window", async () => {
  let received = 0;
  const service = fakeService({
    async upload(_method, _request, data) {
      for await (const bytes of data) received += bytes.length;
      return create(CreateTableResponseSchema, {});
    },
  });
  await using server = await startServer({ service });
  // With 10 ms each way, node's default windows would take about 10 s for this upload.
  const proxy = createProxy({ noDelay: true }, (client) => {
    const upstream = connect({ port: server.port, host: "127.0.0.1", noDelay: true });
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on("data", (piece) => setTimeout(() => to.write(piece), 10));
      from.on("close", () => to.destroy()).on("error", () => {});
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const client = new Client(
    `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    credentials.createInsecure(),
  );
  const started = performance.now();
  await new Promise<void>((resolve, reject) => {
    const call = client.makeClientStreamRequest(
      ...codecs(METHODS.createTable),
      new Metadata(),
      {},
      (error) => (error ? reject(error) : resolve()),
    );
    const piece = create(CreateTableRequestSchema, { data: { data: Buffer.alloc(1 << 20) } }) as Message;
    for (let count = 0; count < 30; count++) call.write(piece);
    call.end();
  });
  assert.equal(received, 30 << 20);
  assert.ok(performance.now() - started < 5000, `${performance.now() - started} ms`);
  client.close();
  proxy.close();
});

test("a size limit of the server holds for gRPC", async () => {
  await using server = await startServer({ maxMessageBytes: 100 });
  const client = new Client(server.address, credentials.createInsecure());
  const { error } = await callUnary(client, { id: ["x".repeat(200)] }, new Metadata());
  assert.equal(error?.code, 8);
  client.close();
});

test("headers of more than 16 KiB are refused on HTTP/1.1 and HTTP/2, and the connection of HTTP/2 serves on", async () => {
  await using server = await startServer();
  const session = connectHttp2(server.url);
  onTestFinished(() => session.destroy());
  const outcomes = async (size: number) => {
    const headers = { "x-large": "a".repeat(size) };
    const { status } = await fetch(`${server.url}/healthz`, { headers });
    const stream = session.request({ ":path": "/healthz", ...headers });
    const [answer] = await once(stream, "response").catch((error: Error) => [error.message]);
    return [status, answer[":status"] ?? answer];
  };
  assert.deepEqual(await outcomes(15_000), [200, 200]);
  assert.deepEqual(await outcomes(17_000), [431, "Stream closed with error code NGHTTP2_ENHANCE_YOUR_CALM"]);
  assert.deepEqual(await outcomes(15_000), [200, 200]);
});

test("a body of gRPC over HTTP/1.1 is refused", async () => {
  await using server = await startServer();
  const response = await fetch(`${server.url}/lance.namespace.v1.LanceNamespaceService/DescribeTable`, {
    method: "POST",
    headers: { "content-type": "application/grpc" },
    body: toBinary(CreateTableRequestSchema, create(CreateTableRequestSchema, {})),
  });
  assert.equal(response.status, 415);
});

test("a connection of HTTP/2 has its share of all streams, and more only while half of them are free", async () => {
  const codes: string[] = [];
  await using server = await startServer({ maxStreams: 8, refused: ({ code }) => void codes.push(code) });
  const watch = {
    ":path": "/grpc.health.v1.Health/Watch",
    ":method": "POST",
    "content-type": "application/grpc",
  };
  const sessions = Array.from({ length: 4 }, () => connectHttp2(server.url));
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
  });
  await Promise.all(sessions.map((session) => once(session, "remoteSettings")));
  const begin = (session: ClientHttp2Session) => {
    const stream = session.request(watch).end(Buffer.alloc(5));
    const outcome = new Promise<string>((resolve) => {
      stream.on("response", () => resolve("begun")).on("error", ({ message }) => resolve(message));
    });
    return { stream, outcome };
  };
  const outcomes = (calls: readonly ReturnType<typeof begin>[]) =>
    Promise.all(calls.map(({ outcome }) => outcome));
  const refused = "Stream closed with error code NGHTTP2_REFUSED_STREAM";
  const [first, second] = sessions as [ClientHttp2Session, ClientHttp2Session];
  const calls = Array.from({ length: 5 }, () => begin(first));
  assert.deepEqual(await outcomes(calls), [...Array(4).fill("begun"), refused]);
  assert.deepEqual(await outcomes([second, second, second].map(begin)), ["begun", "begun", refused]);
  for (const { stream } of calls) stream.destroy();
  // The server learns of it at any moment.
  while ((await begin(first).outcome) === refused);
  assert.equal(codes[0], "Throttling");
});
