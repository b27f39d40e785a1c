import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { type Program, startProgramIn } from "../support/program.ts";
import { MARK, mark, sendEverything } from "./secrets/requests.ts";

/** Returns all output of the program until its end. */
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

/** Returns an upstream that fails in every way, and repeats in its errors what it received, except SQL and rows. */
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

  test("of clients and of its own, with a REST upstream that repeats them", async (t) => {
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

  test("of clients and of its own, with an unreachable gRPC upstream", async () => {
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

  test("of clients, with a gRPC upstream and their own credentials", async () => {
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

  test("of a storage that repeats them, and of wrong options", async (t) => {
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
      // If the server starts nevertheless, the test ends it once it listens.
      await program.listening().then(
        () => program.child.kill("SIGTERM"),
        () => {},
      );
      const { stdout, stderr } = await program.ended;
      assertNoMarks(stdout + stderr);
    }
  });
});
