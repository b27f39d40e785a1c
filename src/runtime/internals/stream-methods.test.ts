import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import {
  connect as connectHttp2,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { type Readable, Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "vitest";
import { changeWriteErrors, meterEnd, meterRequest, meterWrites, type Traffic } from "./stream-methods.ts";

const PIECES = [Buffer.alloc(10), Buffer.alloc(200_000), Buffer.alloc(3)];
const SIZE = 200_013;

async function listen(server: Server): Promise<number> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
}

/** Counts the bytes of a request without a length, and answers it with as many and an `é`. */
async function echo(incoming: Readable, outgoing: Writable, headers: IncomingHttpHeaders): Promise<Traffic> {
  const traffic = { received: 0, sent: 0 };
  meterRequest(incoming, headers, traffic);
  meterWrites(outgoing, traffic);
  meterEnd(outgoing, traffic);
  outgoing.write(await buffer(incoming));
  outgoing.end("\u00e9");
  return traffic;
}

test("push, write and end pass the bytes of a request of HTTP/1.1 and of its answer", async () => {
  const server = createServer();
  const outgoing = request({ port: await listen(server), method: "POST" });
  for (const piece of PIECES) outgoing.write(piece);
  outgoing.end();
  const [incoming, response] = (await once(server, "request")) as [IncomingMessage, ServerResponse];
  assert.deepEqual(await echo(incoming, response, incoming.headers), { received: SIZE, sent: SIZE + 2 });
  server.closeAllConnections();
  server.close();
});

test("push, write and end pass the bytes of a stream of HTTP/2", async () => {
  const server = createHttp2Server();
  const session = connectHttp2(`http://127.0.0.1:${await listen(server)}`);
  const outgoing = session.request({ ":method": "POST" });
  for (const piece of PIECES) outgoing.write(piece);
  outgoing.end();
  const [stream, headers] = (await once(server, "stream")) as [ServerHttp2Stream, IncomingHttpHeaders];
  const traffic = await echo(stream as unknown as Readable, stream as unknown as Writable, headers);
  assert.deepEqual(traffic, { received: SIZE, sent: SIZE + 2 });
  session.destroy();
  server.close();
});

test("write passes a changed error to its caller", async () => {
  const stream = new Writable({ write: (_piece, _encoding, done) => done(new Error("gone")) });
  stream.on("error", () => {});
  changeWriteErrors(stream, (cause) => new Error("changed", { cause }));
  const error = await new Promise<Error | null | undefined>((resolve) => {
    stream.write("piece", "utf8", resolve);
  });
  assert.equal(error?.message, "changed");
});
