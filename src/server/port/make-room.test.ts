import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect, Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";
import { rawCall } from "../../../test/fixtures/wires/grpc.ts";
import { createAddressShares } from "./make-room.ts";

describe("the shares of addresses", () => {
  const socket = () => new Socket();

  it("finds the address with the most connections, if a newcomer has fewer with its next one", () => {
    const shares = createAddressShares(() => false);
    const own = [socket(), socket(), socket()];
    for (const one of own) shares.add(one, "192.0.2.1");
    shares.add(socket(), "192.0.2.2");
    assert.deepEqual([...(shares.largestBeside("192.0.2.3") ?? [])], own);
    assert.deepEqual([...(shares.largestBeside("192.0.2.2") ?? [])], own);
    assert.equal(shares.largestBeside("192.0.2.1"), undefined);
    shares.add(socket(), "192.0.2.2");
    assert.equal(shares.largestBeside("192.0.2.2"), undefined);
  });

  it("counts the addresses of an IPv6 network together, and those of a Unix socket", () => {
    const shares = createAddressShares(() => false);
    for (const host of ["1", "2", "3"]) shares.add(socket(), `2001:db8::${host}`);
    assert.equal(shares.largestBeside("2001:db8::4"), undefined);
    assert.equal(shares.largestBeside("2001:db8:0:1::4")?.size, 3);
    const local = createAddressShares(() => false);
    for (let count = 0; count < 3; count++) local.add(socket(), undefined);
    assert.equal(local.largestBeside(undefined), undefined);
  });

  it("gives back places of connections that close, and those that are taken", async () => {
    const shares = createAddressShares(() => false);
    const [first, second, third] = [socket(), socket(), socket()];
    for (const one of [first, second, third]) shares.add(one, "192.0.2.1");
    first.destroy();
    await once(first, "close");
    assert.deepEqual([...(shares.largestBeside("192.0.2.2") ?? [])], [second, third]);
    shares.take(second);
    assert.equal(shares.largestBeside("192.0.2.2"), undefined);
  });
});

const REQUEST = "GET /v1/x HTTP/1.1\r\nhost: localhost\r\n";
const OTHER = "127.0.0.2";

type Raw = ReturnType<typeof rawConnection>;

const answers = ({ received }: Raw) => received().match(/HTTP\/1\.1 \d+/g)?.length ?? 0;

/** Makes a call on a connection, and waits for its answer. */
async function call(connection: Raw): Promise<void> {
  const before = answers(connection);
  connection.socket.write(`${REQUEST}\r\n`);
  while (answers(connection) === before) await once(connection.socket, "data");
}

/** Returns the answer to a call on a connection of its own. */
async function askFrom(port: number, address: string): Promise<string> {
  const { socket, received, closed } = rawConnection(port, address);
  socket.write(`${REQUEST}connection: close\r\n\r\n`);
  await closed;
  return received();
}

describe("an address that holds most of the connections", () => {
  it("makes room for another address by the next answer on one of them, and not for itself", async () => {
    await using server = await startServer({ maxConnections: 3 });
    const held = Array.from({ length: 3 }, () => rawConnection(server.port));
    for (const connection of held) await call(connection);
    assert.match(await askFrom(server.port, "127.0.0.1"), /^HTTP\/1\.1 429 /);
    assert.match(await askFrom(server.port, OTHER), /^HTTP\/1\.1 200 /);
    const [first, ...others] = held as [Raw, Raw, Raw];
    await call(first);
    await first.closed;
    assert.match(first.received(), /200[\s\S]*200[\s\S]*connection: close/i);
    for (const connection of others) await call(connection);
    for (const { socket, received } of others) {
      assert.doesNotMatch(received(), /connection: close/i);
      socket.destroy();
    }
  });

  it("keeps its running call, whose answer ends the connection", async () => {
    const running: ServerResponse[] = [];
    await using server = await startServer({
      maxConnections: 2,
      rest: (_, response) => void running.push(response),
    });
    const held = [rawConnection(server.port), rawConnection(server.port)];
    for (const { socket } of held) socket.write(`${REQUEST}\r\n`);
    await expect.poll(() => running.length).toBe(2);
    const next = askFrom(server.port, OTHER);
    await expect.poll(() => running.length).toBe(3);
    for (const response of running) response.end("done");
    assert.match(await next, /^HTTP\/1\.1 200 /);
    await Promise.race(held.map(({ closed }) => closed));
    const told = held.filter(({ received }) => /connection: close[\s\S]*done/i.test(received()));
    assert.equal(told.length, 1);
    for (const { socket } of held) socket.destroy();
  });

  it("loses a call that runs on for too long", async () => {
    let calls = 0;
    await using server = await startServer({
      maxConnections: 2,
      farewellMs: 50,
      rest: (_, response) => void (++calls > 2 && response.end()),
    });
    const held = [rawConnection(server.port), rawConnection(server.port)];
    for (const { socket } of held) socket.write(`${REQUEST}\r\n`);
    await expect.poll(() => calls).toBe(2);
    assert.match(await askFrom(server.port, OTHER), /^HTTP\/1\.1 200 /);
    await Promise.race(held.map(({ closed }) => closed));
    for (const { socket } of held) socket.destroy();
  });

  it("makes room by a connection of HTTP/2 between its calls", async () => {
    await using server = await startServer({ maxConnections: 2 });
    const held = [connectHttp2(server.url), connectHttp2(server.url)];
    const plain = { ":path": "/v1/x", "content-type": "text/plain" };
    for (const session of held) await rawCall(session, Buffer.alloc(1), plain);
    const told = held.map((session) => once(session, "goaway"));
    assert.match(await askFrom(server.port, OTHER), /^HTTP\/1\.1 200 /);
    const [code] = await Promise.race(told);
    assert.equal(code, 0);
    for (const session of held) session.destroy();
  });

  it("loses a connection that has sent nothing yet before any other", async () => {
    await using server = await startServer({ maxConnections: 2 });
    const busy = rawConnection(server.port);
    await call(busy);
    const silent = rawConnection(server.port);
    await once(silent.socket, "connect");
    assert.match(await askFrom(server.port, OTHER), /^HTTP\/1\.1 200 /);
    await silent.closed;
    await call(busy);
    assert.doesNotMatch(busy.received(), /connection: close/i);
    busy.socket.destroy();
  });

  it("keeps them if they are no more than those of the other address, or if it is a trusted proxy", async () => {
    for (const [from, trustedProxies] of [
      [OTHER, []],
      ["127.0.0.1", ["127.0.0.1"]],
    ] as const) {
      await using server = await startServer({ maxConnections: 2, trustedProxies });
      const held = [rawConnection(server.port), rawConnection(server.port, from)];
      for (const connection of held) await call(connection);
      assert.match(await askFrom(server.port, OTHER), /^HTTP\/1\.1 429 /);
      for (const { socket } of held) socket.destroy();
    }
  });

  it("is left with the rest while many of its connections are about to end", async () => {
    await using server = await startServer({ maxConnections: 70, rest: () => {} });
    const sockets = [];
    for (const [from, count] of [
      ["127.0.0.1", 70],
      [OTHER, 30],
    ] as const) {
      for (let made = 0; made < count; made++) {
        const socket = connect({ port: server.port, host: "127.0.0.1", localAddress: from });
        socket.on("error", () => {});
        socket.write(`${REQUEST}\r\n`);
        await once(socket, "connect");
        sockets.push(socket);
      }
    }
    const { open } = server.figures();
    for (let address = 3; address < 60; address++) {
      const { socket } = rawConnection(server.port, `127.0.0.${address}`);
      socket.write(`${REQUEST}\r\n`);
      await once(socket, "connect");
      sockets.push(socket);
    }
    assert.match(await askFrom(server.port, "127.0.0.99"), /^HTTP\/1\.1 429 /);
    assert.ok(server.figures().open <= 70 + 64 + 64, `${open} and then ${server.figures().open} are open`);
    for (const socket of sockets) socket.destroy();
  });
});

describe("too many connections", () => {
  it("answers probes beyond the limit, refuses the rest, and recovers", async () => {
    await using server = await startServer({ maxConnections: 2 });
    const taken = [rawConnection(server.port), rawConnection(server.port)];
    await Promise.all(taken.map(({ socket }) => once(socket, "connect")));
    const ask = async (path: string) => {
      const { socket, received, closed } = rawConnection(server.port);
      socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
      await closed;
      return received();
    };
    assert.match(await ask("/healthz"), /^HTTP\/1\.1 200 /);
    assert.match(await ask("/readyz"), /^HTTP\/1\.1 200 /);
    assert.match(await ask("/v1/x"), /^HTTP\/1\.1 429 .*retry-after: 1.*"code":21/is);
    const session = connectHttp2(server.url);
    session.on("error", () => {});
    await new Promise((resolve) => session.on("close", resolve));
    for (const { socket } of taken) socket.destroy();
    for (;;) if (/^HTTP\/1\.1 200 /.test(await ask("/v1/x?last"))) break;
  });
});

describe("idle connections at the limit", () => {
  it("make room for new ones over HTTP/1.1, and busy ones do not", async () => {
    await using server = await startServer({ maxConnections: 2, replaceableMs: 0 });
    const request = "GET /v1/x HTTP/1.1\r\nhost: localhost\r\n";
    const busy = rawConnection(server.port);
    await once(busy.socket, "connect");
    busy.socket.write(request);
    const idle = rawConnection(server.port);
    idle.socket.write(`${request}\r\n`);
    while (!idle.received().includes("rest GET /v1/x")) await once(idle.socket, "data");
    const next = rawConnection(server.port);
    next.socket.write(`${request}connection: close\r\n\r\n`);
    await Promise.all([idle.closed, next.closed]);
    assert.match(next.received(), /^HTTP\/1\.1 200 /);
    busy.socket.write("connection: close\r\n\r\n");
    await busy.closed;
    assert.match(busy.received(), /^HTTP\/1\.1 200 /);
  });

  it("make room for new ones over HTTP/2, even if their clients keep them open", async () => {
    await using server = await startServer({ maxConnections: 1, replaceableMs: 0 });
    const idle = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
    // The preface of a client, and empty settings.
    idle.write(Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", "latin1"));
    await once(idle, "data");
    const next = rawConnection(server.port);
    next.socket.write("GET /v1/x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    await next.closed;
    assert.match(next.received(), /^HTTP\/1\.1 200 /);
    await expect.poll(() => server.figures().open).toBe(0);
    idle.destroy();
  });

  it("stay if they have been idle for a short time", async () => {
    await using server = await startServer({ maxConnections: 1 });
    const idle = rawConnection(server.port);
    idle.socket.write("GET /v1/x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    while (!idle.received().includes("rest GET /v1/x")) await once(idle.socket, "data");
    const next = rawConnection(server.port);
    next.socket.write("GET /v1/x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await next.closed;
    assert.match(next.received(), /^HTTP\/1\.1 429 /);
    assert.equal(idle.socket.destroyed, false);
    idle.socket.destroy();
  });
});

describe("connections beyond the limit", () => {
  for (const [what, bytes] of [
    ["nothing", ""],
    ["half a request", "GET /healthz HTTP/1.1\r\nhost: localhost\r\n"],
  ] as const) {
    it(`do not keep probes out when they send ${what}`, async () => {
      await using server = await startServer({ maxConnections: 1 });
      const open = async () => {
        const connection = rawConnection(server.port);
        await once(connection.socket, "connect");
        connection.socket.write(bytes);
        return connection;
      };
      const taken = [];
      for (let count = 0; count < 200; count++) taken.push(await open());
      const probe = rawConnection(server.port);
      probe.socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
      await probe.closed;
      assert.match(probe.received(), /^HTTP\/1\.1 200 /);
      // The first one is within the limit.
      assert.equal(taken[0]?.socket.destroyed, false);
      for (const { socket } of taken) socket.destroy();
    });
  }
});
