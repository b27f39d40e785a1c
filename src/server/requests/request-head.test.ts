import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientSessionOptions, connect } from "node:http2";
import type { FastifyPluginCallback } from "fastify";
import { describe, it, test } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";
import { LanceError } from "../../namespace/errors.ts";
import { addressOf } from "../../wires/arrival.ts";
import { createTakeAddress } from "./request-head.ts";

const METHOD = "/lance.namespace.v1.LanceNamespaceService/DescribeTable";
const FRAME = "\0\0\0\0\0";

/** Returns the whole answer to raw text, after the server has closed the connection. */
async function answerTo(port: number, text: string): Promise<{ head: string; body: string }> {
  const { socket, received, closed } = rawConnection(port);
  socket.write(text, "latin1");
  await closed;
  const end = received().indexOf("\r\n\r\n");
  return { head: received().slice(0, end), body: received().slice(end + 4) };
}

/** Checks that an answer is whole and has the error of the table. */
function isRefusal({ head, body }: { head: string; body: string }, word: RegExp): void {
  assert.match(head, /^HTTP\/1\.1 400 /);
  assert.match(head, /\r\nconnection: close(?:\r\n|$)/i);
  assert.equal(body.length, Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1]), head);
  const { kind, code, error, status } = JSON.parse(body) as Record<string, unknown>;
  assert.deepEqual([kind, code, status], ["InvalidInput", 13, 400]);
  assert.match(String(error), word);
}

const CHUNKS = "2\r\n{}\r\n0\r\n\r\n";
const SECOND = "DELETE /v1/second HTTP/1.1\r\nhost: localhost\r\n\r\n";

for (const coding of ["chunked", "gzip", "gzip, chunked"])
  for (const connection of ["", "connection: keep-alive\r\n"])
    for (const rest of [CHUNKS, CHUNKS + SECOND, `${"x".repeat(100_000)}${SECOND}`])
      test(`refuses HTTP/1.0 with the transfer encoding ${coding}, ${connection || "without keep-alive"}, before ${rest.length} bytes`, async () => {
        const seen: string[] = [];
        await using server = await startServer({
          rest(request, response) {
            seen.push(request.url ?? "");
            response.end("served");
          },
        });
        const head = `POST /v1/first HTTP/1.0\r\nhost: localhost\r\n${connection}transfer-encoding: ${coding}\r\n\r\n`;
        isRefusal(await answerTo(server.port, head + rest), /HTTP\/1\.0.*transfer-encoding/i);
        assert.deepEqual(seen, []);
      });

test("answers a request that is not HTTP/1.1 with a whole error of the table, also while its client sends on", async () => {
  await using server = await startServer();
  const ambiguous =
    "POST /v1/x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n";
  isRefusal(await answerTo(server.port, `${ambiguous}${CHUNKS}`), /transfer-encoding.*content-length/i);
  isRefusal(await answerTo(server.port, `${ambiguous}${"x".repeat(1_000_000)}`), /transfer-encoding/i);
});

const CREDENTIALS = [
  ["authorization", "Bearer one", "Bearer two"],
  ["x-api-key", "one", "two"],
  ["X-Api-Key", "one", "one"],
] as const;

/** Requests of each protocol over HTTP/1.1, with what their answers to a refusal match. */
const PROTOCOLS = {
  REST: {
    path: "/v1/x",
    type: "application/json",
    body: "{}",
    answer: /^HTTP\/1\.1 400 .*"kind":"InvalidInput"/s,
  },
  "unary Connect": {
    path: METHOD,
    type: "application/json",
    body: "{}",
    answer: /^HTTP\/1\.1 400 .*"code":"invalid_argument"/s,
    extra: "connect-protocol-version: 1\r\n",
  },
  "gRPC-Web": {
    path: METHOD,
    type: "application/grpc-web+proto",
    body: FRAME,
    answer: /^HTTP\/1\.1 200 .*grpc-status: 3\r\n/s,
  },
} as const;

for (const [name, first, second] of CREDENTIALS)
  for (const [protocol, parts] of Object.entries(PROTOCOLS)) {
    const { path, type, body, answer } = parts;
    const extra = "extra" in parts ? parts.extra : "";
    test(`refuses a second ${name} header, ${protocol} over HTTP/1.1 and HTTP/2`, async () => {
      const seen: unknown[] = [];
      await using server = await startServer({
        rest(request, response) {
          seen.push(request.url);
          response.end("served");
        },
      });
      const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n${extra}`;
      const answered = await answerTo(
        server.port,
        `${head}${name}: ${first}\r\nx: y\r\n${name}: ${second}\r\n\r\n${body}`,
      );
      const whole = `${answered.head}\r\n\r\n${answered.body}`;
      assert.match(whole, answer);
      assert.match(whole, new RegExp(`${name.toLowerCase()}`));

      const headers = Object.fromEntries(extra === "" ? [] : [["connect-protocol-version", "1"]]);
      const over2 = await overHttp2(server.url, path, { ...headers, "content-type": type }, body, [
        [name.toLowerCase(), first],
        [name.toLowerCase(), second],
      ]);
      assert.match(`HTTP/1.1 ${over2.status} ${over2.text}`, answer);
      assert.deepEqual(seen, []);
    });
  }

for (const [name, first, second] of CREDENTIALS)
  test(`refuses a second ${name} header, gRPC`, async () => {
    await using server = await startServer();
    const type = { "content-type": "application/grpc", te: "trailers" };
    const credentials = [
      [name.toLowerCase(), first],
      [name.toLowerCase(), second],
    ] as const;
    const { status, grpcStatus, grpcMessage } = await overHttp2(server.url, METHOD, type, FRAME, credentials);
    assert.deepEqual([status, grpcStatus], [200, "3"]);
    assert.match(String(grpcMessage), new RegExp(name, "i"));
    const single = await overHttp2(server.url, METHOD, type, FRAME, credentials.slice(0, 1));
    assert.equal(single.grpcStatus, "0");
  });

test("answers a probe with repeated credentials, which it does not read", async () => {
  await using server = await startServer();
  const answer = await answerTo(
    server.port,
    "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-api-key: a\r\nx-api-key: b\r\nconnection: close\r\n\r\n",
  );
  assert.match(answer.head, /^HTTP\/1\.1 200 /);
});

/** Sends a request over HTTP/2 with a list of headers, in which a name may be repeated. */
async function overHttp2(
  url: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  more: readonly (readonly [string, string])[],
) {
  const session = connect(url, { strictSingleValueFields: false } as ClientSessionOptions);
  try {
    const all = { ":method": "POST", ":path": path, ":scheme": "http", ":authority": new URL(url).host };
    const list = [...Object.entries({ ...all, ...headers }), ...more].flat();
    const stream = session.request(list as never);
    let [status, text, trailers] = [0, "", {} as Record<string, unknown>];
    stream.on("response", (answer) => {
      status = Number(answer[":status"]);
      trailers = { ...answer };
    });
    stream.on("trailers", (answer) => {
      trailers = { ...trailers, ...answer };
    });
    stream.on("data", (piece) => {
      text += String(piece);
    });
    await new Promise((resolve, reject) => {
      stream.on("close", resolve).on("error", reject);
      stream.end(body, "latin1");
    });
    return { status, text, grpcStatus: trailers["grpc-status"], grpcMessage: trailers["grpc-message"] };
  } finally {
    session.destroy();
  }
}

describe("target", () => {
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
});

const plain = createTakeAddress({});

describe("createTakeAddress", () => {
  it("keeps a host of LanceDB's region local, and no other host that names no database", () => {
    const local = { host: "sales.local.api.lancedb.com" };
    assert.equal(plain("/v1/table", local), "/v1/table");
    assert.deepEqual(addressOf(local), { host: local.host, database: undefined });
    for (const host of ["localhost:2333", "local.api.lancedb.com", undefined]) {
      const headers = { host };
      plain("/v1/table", headers);
      assert.equal(addressOf(headers), undefined);
    }
  });

  it("takes the database from a path, whatever the host is", () => {
    const headers = { host: "localhost" };
    const take = createTakeAddress({ pathPrefix: "/db" });
    assert.equal(take("/db/team%2Fevents/v1/table", headers), "/v1/table");
    assert.deepEqual(addressOf(headers), { host: undefined, database: "team/events" });
  });

  it("prefers the authority of HTTP/2", () => {
    const headers = { ":authority": "a.example.com", host: "b.example.com" };
    createTakeAddress({ hosts: ["*.example.com"] })("/v1/table", headers);
    assert.equal(addressOf(headers)?.host, "a.example.com");
  });
});
