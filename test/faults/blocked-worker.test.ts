import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { Agent } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { sendHttp } from "../support/http.ts";
import { startProgram } from "../support/program.ts";

/** Time between connections while a worker is missing, in milliseconds. */
const ATTEMPTS_MS = 50;

/** Names the thread that serves a connection, and blocks it during a call once a file exists. */
const blockingPlugin = (file: string) => `
  import { existsSync } from "node:fs";
  import { threadName } from "node:worker_threads";
  const block = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  const ways = { timer: block, immediate: () => void [() => {}, block, () => {}].map((task) => setImmediate(task)) };
  export default {
    interceptors: [
      (call, request, next) => {
        const way = ways[call.headers["x-test-block"]];
        if (way === undefined) return next(call, request);
        const watch = setInterval(() => {
          if (!existsSync(${JSON.stringify(file)})) return;
          clearInterval(watch);
          way();
        }, 10);
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
  const [root, plugin, signal] = [join(path, "root"), join(path, "block.mjs"), join(path, "block")];
  await writeFile(plugin, blockingPlugin(signal));
  const program = startProgram(
    ...["serve", "--root", root, "--port", "0", "--plugin", plugin],
    // Shorter pauses are those of a busy machine.
    ...["--workers", "2", "--worker-timeout", "2s"],
  );
  onTestFinished(() => void program.child.kill("SIGKILL"));
  let stderr = "";
  program.child.stderr?.on("data", (piece) => {
    stderr += piece;
  });
  const port = await program.listening();
  /** Returns an agent whose only connection is to the second worker. */
  async function connect(): Promise<Agent> {
    for (;;) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      onTestFinished(() => agent.destroy());
      // A worker that has just left may still have accepted the connection.
      const thread = await sendHttp(port, { method: "GET", path: "/test/thread", agent }).catch(
        () => undefined,
      );
      assert.equal(program.child.exitCode ?? program.child.signalCode, null, stderr);
      if (thread?.bytes.toString() === "worker 2") return agent;
      agent.destroy();
      // A worker that starts needs the time that thousands of connections would take from it.
      await sleep(ATTEMPTS_MS);
    }
  }
  const replaced = () => stderr.match(/"reason":"blocked".*"msg":"a worker is replaced"/g)?.length ?? 0;

  const stream = { "content-type": "application/vnd.apache.arrow.stream" };
  const table = { path: "/v1/table/t/create", body: personStream(people(10)), headers: stream };
  const made = await sendHttp(port, table);
  assert.equal(made.status, 200, `${made.bytes}${stderr}`);
  const pipe = await replaceByPipe(root);
  // A worker is replaced again only when the thread that it was before has ended.
  for (const [index, way] of ["timer", "immediate", "timer"].entries()) {
    const headers = { "content-type": "application/json", "x-test-block": way };
    const body = JSON.stringify({ predicate: "id > 1" });
    const count = sendHttp(port, { path: "/v1/table/t/count_rows", agent: await connect(), body, headers });
    const lost = assert.rejects(count);
    await expect.poll(() => waitsForPipe(program.child.pid)).toBe(true);
    await writeFile(signal, "");
    await lost;
    await expect.poll(replaced).toBe(index + 1);
    await rm(signal);
    // It opens only while somebody waits for the other end.
    const end = await open(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    await end.close();
  }
  const readiness = async () =>
    (await sendHttp(port, { method: "GET", path: "/readyz" }).catch(() => undefined))?.status;
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

/** Whether a thread of a process waits in the kernel for the other end of a pipe. */
async function waitsForPipe(pid: number | undefined): Promise<boolean> {
  const tasks = `/proc/${pid}/task`;
  const ids = await readdir(tasks);
  const places = await Promise.all(
    ids.map((id) => readFile(join(tasks, id, "wchan"), "utf8").catch(() => "")),
  );
  return places.some((place) => /^(?:wait_for_partner|fifo_open)$/.test(place));
}
