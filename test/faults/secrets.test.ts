import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import { describe, test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { sendHttp } from "../support/http.ts";
import { type Program, startProgramIn } from "../support/program.ts";

const SERVICE = "/lance.namespace.v1.LanceNamespaceService";
const JSON_TYPE = { "content-type": "application/json" };

/** A credential of its own for every place, so that a failure says which one leaked. */
const mark = (place: string) => `mArKeD-${place}-0123456789`;
const MARK = /mArKeD-([\w-]+?)-0123456789/g;

/** Headers that may carry a credential; `x-request-id` is in the log by purpose. */
const HEADERS: Readonly<Record<string, string>> = Object.fromEntries([
  ["authorization", `Bearer ${mark("authorization")}`],
  ...[
    "x-api-key",
    "cookie",
    "x-mine",
    "x-lance-session",
    "x-amz-security-token",
    "idempotency-key",
    "forwarded",
  ].map((name) => [name, mark(name)]),
]);

const BODY = {
  identity: { api_key: mark("identity-key"), auth_token: mark("identity-token") },
  context: {
    "header.x-lance-c": mark("context-header"),
    "header.authorization": mark("context-auth"),
    n: mark("context"),
  },
  properties: { password: mark("properties") },
  storage_options: { aws_secret_access_key: mark("storage-options") },
  predicate: `name = '${mark("predicate")}'`,
  unknown: mark("unknown-field"),
};

const ignoring = (promise: Promise<unknown>) => promise.catch(() => undefined);

async function raw(port: number, ...pieces: readonly string[]): Promise<void> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  for (const piece of pieces) socket.write(piece);
  socket.end();
  socket.resume();
  await ended(socket);
}

/** Waits for the end of a connection or a stream, which the server may break off. */
function ended(stream: Duplex): Promise<void> {
  return new Promise((resolve) => stream.once("close", () => resolve()));
}

async function grpc(port: number, path: string, headers: Readonly<Record<string, string>>, body: Uint8Array) {
  const session = connectHttp2(`http://127.0.0.1:${port}`).on("error", () => {});
  const stream = session
    .request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    })
    .on("error", () => {});
  stream.end(body);
  stream.resume();
  await ended(stream);
  session.destroy();
}

/** A secret in every place that a client can write to, in requests that are served, refused, and none at all. */
async function sendEverything(port: number): Promise<void> {
  const body = JSON.stringify(BODY);
  const paths = [
    "/v1/table/t/describe",
    "/v1/table/t/count_rows",
    "/v1/table/t/declare",
    "/v1/namespace/n/create",
    "/v1/table/t/drop",
    `/v1/table/t/${mark("path")}`,
    `/${mark("path")}`,
    `/v1/table/t/describe?token=${mark("query")}&branch=%zz${mark("query-escape")}`,
    `/v1/table/t/count_rows?version=${mark("query-value")}`,
    `${SERVICE}/DescribeTable`,
    `${SERVICE}/${mark("method")}`,
  ];
  for (const path of paths) {
    await ignoring(sendHttp(port, { path, headers: { ...HEADERS, ...JSON_TYPE }, body }));
    await ignoring(
      sendHttp(port, { path, headers: { ...HEADERS, ...JSON_TYPE }, body: `{"version":"${mark("type")}"}` }),
    );
    await ignoring(
      sendHttp(port, { path, headers: { ...HEADERS, ...JSON_TYPE }, body: `{"a":${mark("json")}` }),
    );
    await ignoring(sendHttp(port, { path, headers: { ...HEADERS, "content-type": mark("type") }, body }));
    await ignoring(
      sendHttp(port, { path, headers: { ...HEADERS, origin: `https://${mark("origin")}` }, body }),
    );
    await ignoring(
      sendHttp(port, { path, headers: { ...HEADERS, "x-request-timeout-ms": mark("timeout") }, body }),
    );
  }
  const arrow = { ...HEADERS, "content-type": "application/vnd.apache.arrow.stream" };
  await ignoring(sendHttp(port, { path: "/v1/table/t/create", headers: arrow, body: mark("arrow") }));
  await ignoring(
    sendHttp(port, {
      path: "/v1/table/t/create",
      headers: { ...arrow, "content-encoding": "gzip" },
      body: mark("gzip"),
    }),
  );

  const head = `POST /v1/table/t/describe HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${mark("raw-header")}\r\n`;
  await raw(port, `${mark("raw-method")} / HTTP/1.1\r\n\r\n`);
  await raw(port, `${head}${mark("raw-line")}\r\n\r\n`);
  await raw(port, `${head}content-length: 1\r\ncontent-length: 2\r\n\r\n`);
  await raw(port, `${head}content-length: ${mark("raw-length")}\r\n\r\n`);
  await raw(port, `${head}transfer-encoding: chunked\r\n\r\n${mark("raw-chunk")}\r\n`);
  await raw(port, `${head}x: \x01${mark("raw-control")}\r\n\r\n`);
  await raw(port, `${head}x: ${mark("raw-long").repeat(2000)}\r\n\r\n`);
  await raw(port, `GET http://user:${mark("userinfo")}@localhost/v1/x HTTP/1.1\r\nhost: localhost\r\n\r\n`);
  await raw(port, `GET /v1/x HTTP/1.1\r\nhost: ${mark("host")}.example\r\n\r\n`);
  await raw(port, `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${mark("frames")}`);
  await raw(port, head, mark("raw-cut"));

  const names = Buffer.concat([
    Buffer.from("\x0a\x01t"),
    Buffer.from([0x2a, 40, 0x0a, 1, 0x61, 0x12]),
    Buffer.from(mark("proto")),
  ]);
  const bin = Buffer.from(mark("metadata-bin"));
  const metadata = {
    ...HEADERS,
    "x-lance-b-bin": bin.toString("base64"),
    "x-lance-broken-bin": mark("metadata-broken"),
  };
  for (const path of [
    `${SERVICE}/DescribeTable`,
    `${SERVICE}/CreateTable`,
    `${SERVICE}/QueryTable`,
    `/${mark("rpc")}/x`,
  ]) {
    for (const message of [
      Buffer.alloc(0),
      Buffer.from("\x0a\x01t", "latin1"),
      names,
      Buffer.from(`\xff${mark("message")}`, "latin1"),
    ]) {
      const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
      await grpc(port, path, metadata, frame);
      await grpc(port, path, { ...metadata, authorization: `Bearer ${mark("metadata-bytes")}\xe9` }, frame);
      await grpc(
        port,
        path,
        { ...metadata, "grpc-timeout": mark("grpc-timeout"), "grpc-encoding": mark("encoding") },
        frame,
      );
    }
  }
}

/** Everything that the program has written by its end. */
async function outputOf(program: Program, work: (port: number) => Promise<void>): Promise<string> {
  try {
    await work(await program.listening());
  } finally {
    program.child.kill("SIGTERM");
  }
  const { stdout, stderr } = await program.ended;
  return stdout + stderr;
}

function assertNoMarks(output: string): void {
  const leaks = new Set([...output.matchAll(MARK)].map(([, place]) => place));
  const lines = output.split("\n").filter((line) => line.match(MARK));
  assert.deepEqual([...leaks], [], lines.map((line) => line.slice(0, 1500)).join("\n"));
}

function parsed(body: string): Record<string, unknown> {
  try {
    return JSON.parse(body) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** An upstream that fails in every way, and tells in its errors what it was sent: all but SQL and rows. */
function tellingUpstream(): RequestListener {
  let calls = 0;
  const statuses = [400, 401, 403, 404, 429, 500, 502, 503, 200];
  return (request, response) => {
    const pieces: Buffer[] = [];
    request
      .on("data", (piece: Buffer) => pieces.push(piece))
      .on("end", () => {
        const { predicate: _, ...body } = parsed(Buffer.concat(pieces).toString());
        const told = `${JSON.stringify(request.rawHeaders)} ${request.url} ${JSON.stringify(body)}`;
        calls += 1;
        if (calls % 10 === 0) return response.destroy();
        const status = statuses[calls % statuses.length] as number;
        response.writeHead(status, { "content-type": calls % 2 === 0 ? "application/json" : "text/plain" });
        return response.end(JSON.stringify({ error: told, code: 13, detail: told }));
      });
  };
}

async function listening(listener: RequestListener): Promise<{ server: Server; port: number }> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, port: (server.address() as AddressInfo).port };
}

const COMMON = ["--port", "0", "--log-level", "trace"];

describe("what the program writes has no credential in it", () => {
  test("of clients of a directory", async () => {
    const { path, remove } = await temporaryDirectory();
    const environment = { AWS_SECRET_ACCESS_KEY: mark("environment") };
    const output = await outputOf(
      startProgramIn(environment, "serve", "--root", path, ...COMMON),
      sendEverything,
    );
    assert.match(output, /"msg":"call"/);
    assert.match(output, /"msg":"request refused"/);
    assertNoMarks(output);
    await remove();
  });

  test("of clients and of its own, with a REST upstream that tells them back", async (t) => {
    const { server, port } = await listening(tellingUpstream());
    t.onTestFinished(() => void server.close());
    for (const identity of [[], ["--upstream-identity", "service", "--upstream-token", mark("own-token")]]) {
      const program = startProgramIn(
        { LANCE_GATEWAY_HEADER: `X-Own=${mark("own-header")}` },
        ...["serve", "--backend", "rest", "--uri", `http://127.0.0.1:${port}`, ...identity, ...COMMON],
      );
      const output = await outputOf(program, sendEverything);
      assert.match(output, /"protocol":"rest"/);
      assertNoMarks(output);
    }
  });

  test("of clients and of its own, with an upstream of gRPC that is away", async () => {
    const program = startProgramIn(
      { LANCE_GATEWAY_UPSTREAM_API_KEY: mark("own-key") },
      ...[
        "serve",
        "--backend",
        "grpc",
        "--address",
        "127.0.0.1:1",
        "--upstream-identity",
        "service",
        ...COMMON,
      ],
    );
    assertNoMarks(await outputOf(program, sendEverything));
  });

  test("of clients, with an upstream of gRPC and their own credentials", async () => {
    const program = startProgramIn({}, "serve", "--backend", "grpc", "--address", "127.0.0.1:1", ...COMMON);
    assertNoMarks(await outputOf(program, sendEverything));
  });

  test("of an identity provider that refuses it", async (t) => {
    const { server, port } = await listening(tellingUpstream());
    t.onTestFinished(() => void server.close());
    const endpoint = `http://127.0.0.1:${port}/token`;
    const program = startProgramIn(
      { LANCE_GATEWAY_TOKEN_CLIENT_SECRET: mark("client-secret") },
      ...["serve", "--backend", "rest", "--uri", `http://127.0.0.1:${port}`, "--token-endpoint", endpoint],
      ...["--upstream-identity", "token-exchange", "--token-client-id", "gateway", ...COMMON],
    );
    const ended = program.ended.then(({ stdout, stderr }) => stdout + stderr);
    const output = await outputOf(program, sendEverything).catch(() => ended);
    assertNoMarks(output);
  });

  test("of a storage that tells them back, and of options that are wrong", async (t) => {
    const { server, port } = await listening((request, response) => {
      response.writeHead(403, { "content-type": "application/xml" });
      response.end(
        `<Error><Code>AccessDenied</Code><Message>${request.url} ${request.rawHeaders.join(" ")}</Message></Error>`,
      );
    });
    t.onTestFinished(() => void server.close());
    const storage = [
      "--storage-option",
      `aws_access_key_id=${mark("access-key")}`,
      "--storage-option",
      `aws_secret_access_key=${mark("secret-key")}`,
      "--storage-option",
      `aws_session_token=${mark("session-token")}`,
      ...[
        "--storage-option",
        `aws_endpoint=http://127.0.0.1:${port}`,
        "--storage-option",
        "aws_allow_http=true",
      ],
      ...["--storage-option", "aws_region=us-east-1"],
    ];
    const runs: readonly (readonly string[])[] = [
      ["serve", "--root", "s3://bucket/prefix", ...storage, ...COMMON],
      ["gc", "--root", "s3://bucket/prefix", ...storage],
      ["serve", "--root", `s3://user:${mark("root-userinfo")}@bucket/x`, ...COMMON],
      ["serve", "--backend", "rest", "--uri", `http://user:${mark("uri-userinfo")}@127.0.0.1`, ...COMMON],
      ["serve", "--backend", "rest", "--uri", "http://h", "--header", mark("bad-header"), ...COMMON],
      ["serve", "--storage-option", `Bad Key=${mark("bad-option")}`, ...COMMON],
    ];
    for (const args of runs) {
      const program = startProgramIn({}, ...args);
      // A server that starts all the same is ended once it listens.
      await program.listening().then(
        () => program.child.kill("SIGTERM"),
        () => {},
      );
      const { stdout, stderr } = await program.ended;
      assertNoMarks(stdout + stderr);
    }
  });
});
