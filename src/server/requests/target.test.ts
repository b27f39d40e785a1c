import assert from "node:assert/strict";
import { once } from "node:events";
import type { FastifyPluginCallback } from "fastify";
import { test } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";
import { LanceError } from "../../namespace/errors.ts";

/** Returns the answer to raw text, after the server has closed the connection. */
async function answerTo(port: number, head: string): Promise<string> {
  const { socket, received, closed } = rawConnection(port);
  socket.write(`${head}\r\nconnection: close\r\n\r\n`);
  await closed;
  return received();
}

test("a target in the absolute form reaches every route, with its own host", async () => {
  await using server = await startServer();
  const get = (target: string) => answerTo(server.port, `GET ${target} HTTP/1.1\r\nhost: localhost`);
  assert.match(await get("http://localhost/healthz"), / 200 .*ok\n/s);
  assert.match(await get("http://localhost:80/v1/x?y=1"), /rest GET \/v1\/x\?y=1 0/);
  assert.match(await get("http://localhost?y=1"), /rest GET \/\?y=1 0/);
  assert.match(await get("http://other.example/v1/x"), / 403 /);
  assert.match(await get("http://user@localhost/v1/x"), / 400 /);
  const connect = "/lance.namespace.v1.LanceNamespaceService/DescribeTable";
  const { socket, received, closed } = rawConnection(server.port);
  const headers =
    "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close";
  socket.write(`POST http://localhost${connect} HTTP/1.1\r\n${headers}\r\n\r\n{}`);
  await closed;
  assert.match(received(), /"table":"t"/);
});

test("a request without a host, with two or with a malformed one is answered 400", async () => {
  await using server = await startServer();
  for (const hosts of [
    "",
    "\r\nhost: localhost\r\nHost: localhost",
    "\r\nhost: a b",
    "\r\nhost: a/b",
    "\r\nhost: x@y",
  ]) {
    const answer = await answerTo(server.port, `GET /v1/x HTTP/1.1${hosts}`);
    assert.match(answer, /^HTTP\/1\.1 400 .*"type":"\/errors\/bad-request"/s, hosts);
  }
  assert.match(await answerTo(server.port, "GET /v1/x HTTP/1.0"), / 200 /);
});

test("probes answer HEAD without a body, and other methods with 405 and those they allow", async () => {
  await using server = await startServer();
  for (const path of ["/healthz", "/readyz"]) {
    const head = await answerTo(server.port, `HEAD ${path} HTTP/1.1\r\nhost: localhost`);
    assert.match(head, /^HTTP\/1\.1 200 .*\r\n\r\n$/s);
    for (const method of ["POST", "DELETE"]) {
      const answer = await answerTo(
        server.port,
        `${method} ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0`,
      );
      assert.match(answer, /^HTTP\/1\.1 405 /);
      assert.match(answer, /\r\nallow: GET, HEAD\r\n/i);
    }
  }
});

test("a body that is announced is asked for only when somebody reads it", async () => {
  const reading: FastifyPluginCallback = (app, _options, done) => {
    app.post("/v1/x", async ({ raw }) => {
      if (Number(raw.headers["content-length"]) > 10) throw new LanceError("PayloadTooLarge", "too large");
      await once(
        raw.on("data", () => {}),
        "end",
      );
      return "read";
    });
    done();
  };
  await using server = await startServer({ plugins: [reading] });
  const start = (length: number) => {
    const connection = rawConnection(server.port);
    connection.socket.write(
      `POST /v1/x HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n`,
    );
    return connection;
  };
  const large = start(100_000);
  await new Promise((resolve) => large.socket.once("data", resolve));
  assert.match(large.received(), /^HTTP\/1\.1 413 /);
  large.socket.end();
  const small = start(3);
  await new Promise((resolve) => small.socket.once("data", resolve));
  assert.match(small.received(), /^HTTP\/1\.1 100 /);
  small.socket.write("abc");
  await small.closed;
  assert.match(small.received(), /read$/);
});
