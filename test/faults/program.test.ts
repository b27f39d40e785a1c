import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { type Program, refusing, startProgram } from "../support/program.ts";

const ONE_LINE = /^lance-gateway: [^\n]+\n$/;

describe("the program", () => {
  let directory: { path: string; remove(): Promise<void> };
  beforeAll(async () => {
    directory = await temporaryDirectory();
  });
  afterAll(async () => {
    for (const { child } of started) child.kill("SIGKILL");
    await directory.remove();
  });

  /** Programs to kill in the end, if a test failed before it ended them. */
  const started: Program[] = [];
  function start(...args: string[]): Program {
    const program = startProgram(...args);
    started.push(program);
    return program;
  }

  let roots = 0;
  const freshRoot = () => {
    roots += 1;
    return join(directory.path, `root${roots}`);
  };

  const wrongUse = [
    [],
    ["sing"],
    ["serve", "--no-such-option"],
    ["serve", "--port", "abc"],
    ["serve", "--port", "65536"],
    ["serve", "--port"],
    ["serve", "--port", ""],
    ["serve", "--log-level", "loud"],
    ["serve", "--max-message-size", "0"],
    ["serve", "a-positional-argument"],
  ];
  for (const args of wrongUse) {
    test(`ends with one line and code 2 on wrong use: "${args.join(" ")}"`, async () => {
      const { code, stdout, stderr } = await start(...args).ended;
      assert.equal(code, 2);
      assert.equal(stdout, "");
      assert.match(stderr, ONE_LINE);
    });
  }

  test("prints to standard output and ends with code 0 for --help and --version", async () => {
    for (const args of [["--help"], ["serve", "--help"], ["--version"]]) {
      const { code, stdout, stderr } = await start(...args).ended;
      assert.deepEqual([code, stderr], [0, ""]);
      assert.ok(stdout.length > 0);
    }
  });

  async function assertCannotStart(mention: RegExp, ...args: string[]): Promise<void> {
    const { code, stdout, stderr } = await start("serve", ...args).ended;
    assert.equal(code, 1, stderr);
    assert.equal(stdout, "");
    assert.match(stderr, ONE_LINE);
    assert.match(stderr, mention);
  }

  test("ends with one line and code 1 when its port is in use", async (t) => {
    const other = createServer().listen(0, "127.0.0.1");
    t.onTestFinished(() => void other.close());
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    await assertCannotStart(new RegExp(`port ${port}`), "--root", freshRoot(), "--port", String(port));
  });

  test("ends without a drain when its port for operators is in use", async (t) => {
    const other = createServer().listen(0, "127.0.0.1");
    t.onTestFinished(() => void other.close());
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const taken = ["--admin-port", String(port), "--drain-delay", "1h", "--log-level", "error"];
    for (const workers of ["1", "2"])
      await assertCannotStart(
        new RegExp(`port ${port}`),
        ...["--root", freshRoot(), "--port", "0", "--workers", workers, ...taken],
      );
  });

  test("ends with one line and code 1 when its root is a file, or below one", async () => {
    const file = freshRoot();
    await writeFile(file, "");
    for (const root of [file, join(file, "below")]) {
      await assertCannotStart(/root/, "--root", root, "--port", "0");
    }
  });

  test("ends with one line and code 1 when its root is below a directory in which it cannot create one", async (t) => {
    if (!existsSync("/proc/self")) return t.skip("only Linux has such a directory");
    await assertCannotStart(/\/proc\/nope/, "--root", "/proc/nope", "--port", "0");
  });

  test("ends with one line and code 1 when it may not read its root", async (t) => {
    if (process.getuid?.() === 0) return t.skip("the superuser may read everything");
    const root = freshRoot();
    await mkdir(root, { mode: 0o000 });
    await assertCannotStart(/root/, "--root", root, "--port", "0");
    await chmod(root, 0o700);
  });

  test("prints its address in a line for each protocol, and keeps its options", async () => {
    const root = freshRoot();
    for (const rows of [2, 4]) {
      const program = start("serve", "--root", root, "--port", "0");
      const port = await program.listening();
      const { client, close } = createGrpcClient(port);
      if (rows === 2) await client.createTable({ id: ["t"] }, personStream(people(2)));
      else await client.insertIntoTable({ id: ["t"] }, personStream(people(2)));
      assert.equal(Number((await client.countTableRows({ id: ["t"] })).count), rows);
      close();
      program.child.kill("SIGTERM");
      const { code, stdout } = await program.ended;
      assert.equal(code, 0);
      for (const protocol of ["REST", "gRPC", "Connect", "gRPC-Web"]) {
        const lines = stdout.split("\n").filter((line) => line.includes(`  ${protocol} `));
        assert.equal(lines.length, 1, stdout);
        assert.match(lines[0] as string, new RegExp(`127\\.0\\.0\\.1:${port}`));
      }
    }
  });

  /** Begins an upload over REST; resolves when the server has received it. */
  async function beginUpload(port: number): Promise<{ outgoing: ClientRequest; answered: Promise<number> }> {
    const headers = { expect: "100-continue" };
    const path = "/v1/table/t/create";
    const outgoing = request({ host: "127.0.0.1", port, method: "POST", path, headers });
    const answered = new Promise<number>((resolve) => {
      outgoing.once("error", () => resolve(0));
      outgoing.once("response", (response: IncomingMessage) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
    });
    outgoing.flushHeaders();
    await once(outgoing, "continue");
    return { outgoing, answered };
  }

  async function startServing(...args: string[]): Promise<{ program: Program; port: number }> {
    const program = start("serve", "--root", freshRoot(), "--port", "0", ...args);
    return { program, port: await program.listening() };
  }

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    test(`ends with code 0 on ${signal} when the running upload has finished`, async () => {
      const { program, port } = await startServing();
      const { outgoing, answered } = await beginUpload(port);
      program.child.kill(signal);
      await refusing(port);
      outgoing.end(personStream(people(3)));
      assert.equal(await answered, 200);
      assert.equal((await program.ended).code, 0);
    });
  }

  test("tells HTTP/2 clients to leave on SIGTERM, and answers their open requests", async () => {
    const { program, port } = await startServing();
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    // The client itself answers an earlier ping.
    await once(session, "connect");
    const stream = session.request({ ":method": "POST", ":path": "/v1/namespace/new/create" });
    stream.write("{");
    await new Promise<void>((resolve) => session.ping(() => resolve()));
    const told = once(session, "goaway");
    program.child.kill("SIGTERM");
    await told;
    stream.end("}");
    const [headers] = await once(stream, "response");
    assert.equal(headers[":status"], 200);
    stream.resume();
    assert.equal((await program.ended).code, 0);
  });

  test("cuts a running call off when its time is up", async () => {
    const { program, port } = await startServing("--drain-seconds", "0");
    const { answered } = await beginUpload(port);
    program.child.kill("SIGTERM");
    assert.equal((await program.ended).code, 0);
    assert.equal(await answered, 0);
  });

  test("ends at once on a later signal, but not on signals that come with the first", async (t) => {
    const { program, port } = await startServing();
    const { answered } = await beginUpload(port);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) program.child.kill(signal);
    await refusing(port);
    const again = setInterval(() => program.child.kill("SIGTERM"), 100);
    t.onTestFinished(() => clearInterval(again));
    const { code, signal } = await program.ended;
    assert.ok(code !== 0 || signal !== null);
    assert.equal(await answered, 0);
  });
});
