import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, performServerHandshake } from "node:http2";
import { type AddressInfo, connect as connectTcp, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createServer as createTlsServer } from "node:tls";
import { expect, test } from "vitest";
import { makeAuthority } from "../../../test/support/certificates.ts";
import { startReading, stopReading } from "./socket-reading.ts";

/** Longer than a request on loopback takes. */
const WHILE_MS = 100;

/** Serves HTTP/2 on connections of a port, and connects to it. */
async function openSession(port: Server, event: string, scheme: string) {
  let streams = 0;
  port.on(event, (socket: Socket) => {
    const session = performServerHandshake(socket);
    session.on("error", () => {});
    session.on("stream", (stream) => {
      streams += 1;
      stream.respond({ ":status": 200 }, { endStream: true });
    });
  });
  port.listen(0, "127.0.0.1");
  await once(port, "listening");
  const client = connect(`${scheme}://127.0.0.1:${(port.address() as AddressInfo).port}`, {
    rejectUnauthorized: false,
  });
  const [[socket]] = (await Promise.all([once(port, event), once(client, "connect")])) as [[Socket], unknown];
  return {
    socket,
    streams: () => streams,
    request: () => client.request().resume().end(),
    close() {
      client.destroy();
      socket.destroy();
      port.close();
    },
  };
}

const PORTS: Readonly<Record<string, () => Promise<Parameters<typeof openSession>>>> = {
  "a socket": async () => [createServer(), "connection", "http"],
  "a TLS socket": async () => {
    const { cert, key } = await (await makeAuthority()).sign();
    return [createTlsServer({ cert, key, ALPNProtocols: ["h2"] }), "secureConnection", "https"];
  },
};

for (const [what, makePort] of Object.entries(PORTS)) {
  test(`the _handle of ${what} stops and starts the reading of an HTTP/2 session`, async () => {
    const session = await openSession(...(await makePort()));
    session.request();
    await expect.poll(session.streams).toBe(1);
    assert.equal(stopReading(session.socket), true);
    session.request();
    await sleep(WHILE_MS);
    assert.equal(session.streams(), 1);
    assert.equal(startReading(session.socket), true);
    await expect.poll(session.streams).toBe(2);
    session.close();
    assert.equal(startReading(session.socket), true);
    assert.equal(stopReading(session.socket), false);
  });
}

test("a socket that sends is not stopped, and started only once it has sent", async () => {
  const port = createServer({ noDelay: true });
  port.listen(0, "127.0.0.1");
  await once(port, "listening");
  const client = connectTcp((port.address() as AddressInfo).port, "127.0.0.1").pause();
  const [socket] = (await once(port, "connection")) as [Socket];
  socket.write(Buffer.alloc(64 * 1024 * 1024));
  assert.equal(stopReading(socket), false);
  assert.equal(startReading(socket), false);
  client.resume();
  await expect.poll(() => startReading(socket)).toBe(true);
  client.destroy();
  socket.destroy();
  port.close();
});
