import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { open, readdir, rm, writeFile } from "node:fs/promises";
import { Agent } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { sendHttp } from "../support/http.ts";
import { startProgram } from "../support/program.ts";

/** Names the thread that serves a connection, and blocks it a moment after a call has begun. */
const PLUGIN = `
  import { threadName } from "node:worker_threads";
  const block = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  // Node never runs immediates again in a thread that was interrupted in one.
  const ways = { timer: block, immediate: () => setImmediate(block) };
  export default {
    interceptors: [
      (call, request, next) => {
        const way = ways[call.headers["x-test-block"]];
        if (way !== undefined) setTimeout(way, 200);
        return next(call, request);
      },
    ],
    fastify(app, _options, done) {
      app.get("/test/thread", () => threadName);
      done();
    },
  };
`;

test("a worker that is blocked while the engine works for it loses its own connections alone", async ({
  onTestFinished,
}) => {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const [root, plugin] = [join(path, "root"), join(path, "block.mjs")];
  await writeFile(plugin, PLUGIN);
  const program = startProgram(
    ...["serve", "--root", root, "--port", "0", "--plugin", plugin],
    ...["--workers", "2", "--worker-timeout", "1s"],
  );
  onTestFinished(() => void program.child.kill("SIGKILL"));
  let stderr = "";
  program.child.stderr?.on("data", (piece) => {
    stderr += piece;
  });
  const port = await program.listening();
  /** Has the second worker count rows, and blocks it meanwhile. */
  async function blockCount(way: string): Promise<void> {
    for (;;) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      onTestFinished(() => agent.destroy());
      const thread = await sendHttp(port, { method: "GET", path: "/test/thread", agent });
      if (thread.bytes.toString() !== "worker 2") continue;
      const headers = { "content-type": "application/json", "x-test-block": way };
      const body = JSON.stringify({ predicate: "id > 1" });
      await assert.rejects(sendHttp(port, { path: "/v1/table/t/count_rows", agent, body, headers }));
      return;
    }
  }
  const replaced = () => stderr.match(/"reason":"blocked".*"msg":"a worker is replaced"/g)?.length ?? 0;

  const stream = { "content-type": "application/vnd.apache.arrow.stream" };
  await sendHttp(port, { path: "/v1/table/t/create", body: personStream(people(10)), headers: stream });
  const pipe = await replaceByPipe(root);
  // A worker is replaced again only when the thread that it was before has ended.
  for (const [index, way] of ["timer", "immediate", "timer"].entries()) {
    await blockCount(way);
    await expect.poll(replaced).toBe(index + 1);
    // It opens only while the engine waits for the other end.
    const end = await open(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    await end.close();
  }
  const readiness = async () => (await sendHttp(port, { method: "GET", path: "/readyz" })).status;
  await expect.poll(readiness).toBe(200);
  assert.equal(program.child.exitCode ?? program.child.signalCode, null);
});

/** Puts a pipe into the place of a table's only data file, so that the engine waits when it reads it. */
async function replaceByPipe(root: string): Promise<string> {
  const files = await readdir(root, { recursive: true });
  const data = files.filter((file) => /t\.lance.data.[^/]*\.lance$/.test(file));
  assert.equal(data.length, 1, files.join("\n"));
  const file = join(root, String(data[0]));
  await rm(file);
  await promisify(execFile)("mkfifo", [file]);
  return file;
}
