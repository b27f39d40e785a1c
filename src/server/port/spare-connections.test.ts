import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";

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
