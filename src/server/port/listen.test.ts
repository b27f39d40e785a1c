import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { stat, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect, createServer as createNetServer } from "node:net";
import { join } from "node:path";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, it } from "vitest";
import { callUnary, fakeService, memoryLog, rawCall, statusOf } from "../../../test/fixtures/wires/grpc.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { NODE } from "../../../test/support/node-command.ts";
import { encodeFrame } from "../../wires/grpc/frame.ts";
import { createReadiness } from "../app/probes.ts";
import { createServer } from "../server.ts";

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  folder = await temporaryDirectory();
});
afterAll(() => folder.remove());

async function startOn(path: string, mode = 0o600) {
  const readiness = createReadiness();
  const server = createServer({ service: fakeService(), readiness, log: memoryLog().log });
  const address = await server.listen({ path, mode });
  return { address, [Symbol.asyncDispose]: async () => void (await server.close({ graceMs: 0 })) };
}

async function get(socketPath: string, path = "/healthz", host = "localhost"): Promise<number> {
  const [response] = await once(request({ socketPath, path, headers: { host } }).end(), "response");
  response.resume();
  return response.statusCode;
}

describe("a Unix socket", () => {
  it("serves HTTP/1.1, HTTP/2 and gRPC, and is removed at the end", async () => {
    const path = join(folder.path, "gateway.sock");
    {
      await using server = await startOn(path);
      assert.deepEqual(server.address, { address: path, family: "unix", port: 0 });
      assert.equal(await get(path), 200);
      const session = connectHttp2("http://localhost", { createConnection: () => connect({ path }) });
      assert.equal(statusOf(await rawCall(session, encodeFrame(new Uint8Array(0), false))), 0);
      session.close();
      const client = new Client(`unix:${path}`, credentials.createInsecure());
      assert.equal((await callUnary(client, {}, new Metadata())).error, null);
      client.close();
    }
    assert.equal(existsSync(path), false);
  });

  for (const mode of [0o600, 0o660]) {
    it(`has the mode ${mode.toString(8)} whatever the mask is`, async () => {
      const path = join(folder.path, "mode.sock");
      const mask = process.umask(0);
      try {
        await using _ = await startOn(path, mode);
        assert.equal((await stat(path)).mode & 0o777, mode);
        assert.equal(process.umask(), 0);
      } finally {
        process.umask(mask);
      }
    });
  }

  it("replaces the file that a killed process has left", async () => {
    const path = join(folder.path, "stale.sock");
    const program = `net.createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 9))`;
    const [node, ...args] = NODE;
    await once(spawn(node, [...args, "--eval", program]), "exit");
    assert.ok(existsSync(path));
    await using _ = await startOn(path);
    assert.equal(await get(path), 200);
  });

  it("is refused where somebody listens, where another file is, and where none can be", async () => {
    const path = join(folder.path, "taken.sock");
    const other = createNetServer().listen(path);
    await once(other, "listening");
    await assert.rejects(startOn(path), { message: `somebody listens on ${path}` });
    other.close();
    const file = join(folder.path, "file");
    await writeFile(file, "rows");
    await assert.rejects(startOn(file), { message: `${file} exists and is not a socket` });
    assert.ok(existsSync(file));
    await assert.rejects(
      startOn(join(folder.path, "no", "a.sock")),
      /cannot be listened on: its directory does not exist$/,
    );
    await assert.rejects(
      startOn(join(folder.path, "x".repeat(200))),
      /cannot be listened on: the path is too long/,
    );
  });

  it("takes every host, because no browser can reach it", async () => {
    const path = join(folder.path, "hosts.sock");
    await using _ = await startOn(path);
    assert.equal(await get(path, "/metrics", "sidecar.example.com"), 404);
  });
});
