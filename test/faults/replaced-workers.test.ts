import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { Agent } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, type TestContext, test } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { ignoreReset, jsonOf, sendHttp } from "../support/http.ts";
import { startProgram } from "../support/program.ts";

/** Time between connections while a worker is missing, in milliseconds. */
const ATTEMPTS_MS = 50;

test("a worker that ends during a long call of the engine is replaced at once, and the process goes on", async (t) => {
  const { port, root, program, stderr, connect } = await startGateway(t);
  await sendHttp(port, {
    path: "/v1/table/slow/create",
    body: personStream(people(10)),
    headers: ARROW_TYPE,
  });
  const pipe = await replaceRowsByPipe(root);
  const { agent, name } = await connect();
  const lost = assert.rejects(merge(port, agent));
  // The engine waits for the rows, and so does its call, until somebody writes to the pipe.
  await expect.poll(() => waitsInPipe(program.child.pid)).toBe(true);
  await end(name);
  await lost;
  await expect.poll(() => starts(name)).toBe(2);
  // The next replacement waits for the thread with the call.
  await end(name);
  await expect.poll(() => stderr().match(/"msg":"a worker is replaced"/g)).toHaveLength(2);
  await (await open(pipe, "w")).close();
  await expect.poll(() => [starts(name), program.child.signalCode]).toEqual([3, null]);

  async function end(worker: string): Promise<void> {
    await assert.rejects(
      sendHttp(port, { method: "GET", path: "/test/throw", agent: (await connect(worker)).agent }),
    );
  }
  function starts(worker: string): number {
    const number = worker.replace("worker ", "");
    return stderr().match(new RegExp(`"worker":${number},.*"msg":"listening"`, "g"))?.length ?? 0;
  }
});

test("a drain that gives a long call of the engine up ends the process with code 0", async (t) => {
  const { port, root, program, connect } = await startGateway(t, "--drain-seconds", "0");
  await sendHttp(port, {
    path: "/v1/table/slow/create",
    body: personStream(people(10)),
    headers: ARROW_TYPE,
  });
  await replaceRowsByPipe(root);
  const lost = assert.rejects(merge(port, (await connect()).agent));
  await expect.poll(() => waitsInPipe(program.child.pid)).toBe(true);
  program.child.kill("SIGTERM");
  await lost;
  const { code, signal } = await program.ended;
  assert.deepEqual([code, signal], [0, null]);
});

test("a reload while a worker starts neither replaces nor counts it again", async (t) => {
  const { port, path, program, stderr, connect } = await startGateway(t);
  const held = join(path, "held");
  await writeFile(held, "");
  const { agent } = await connect();
  await assert.rejects(sendHttp(port, { method: "GET", path: "/test/throw", agent }));
  await expect.poll(() => stderr()).toContain("a replacement starts");
  await writeFile(join(path, "gateway.json"), JSON.stringify({ "log-level": "debug" }));
  program.child.kill("SIGHUP");
  await expect.poll(() => stderr()).toContain("the configuration has changed");
  await rm(held);
  const ready = async () => (await sendHttp(port, { method: "GET", path: "/readyz" })).status;
  await expect.poll(() => stderr().match(/"msg":"listening"/g)).toHaveLength(3);
  await expect.poll(ready).toBe(200);
  const metrics = await sendHttp(port, { method: "GET", path: "/metrics" });
  assert.match(
    metrics.bytes.toString(),
    /^lance_gateway_workers_replaced_total\{reason="ended"\} 1$/m,
    stderr(),
  );
});

test("a reload whose worker ends before its turn to open what changes fails, and the next one has an effect", async (t) => {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const [plugin, config, held] = ["slow.mjs", "gateway.json", "held"].map((name) => join(path, name)) as [
    string,
    string,
    string,
  ];
  await writeFile(plugin, slowlyOpened(held));
  const options = (version: string) =>
    JSON.stringify({ backend: "slow", "backend-option": [`version=${version}`] });
  await writeFile(config, options("1"));
  const program = startProgram(
    ...["serve", "--config", config, "--port", "0", "--plugin", plugin, "--workers", "2"],
  );
  t.onTestFinished(() => void program.child.kill("SIGKILL"));
  let stderr = "";
  program.child.stderr?.on("data", (piece) => {
    stderr += piece;
  });
  await program.listening();
  await writeFile(held, "");
  await writeFile(config, options("2"));
  program.child.kill("SIGHUP");
  await expect.poll(() => stderr).toContain("worker 1 opens version 2");
  await writeFile(`${held} worker 2`, "");
  await expect.poll(() => stderr).toContain("a worker is replaced");
  await rm(`${held} worker 2`);
  await rm(held);
  await expect.poll(() => stderr).toContain("a worker has ended meanwhile");
  program.child.kill("SIGHUP");
  await expect.poll(() => stderr).toContain("the configuration has changed");
});

/** Starts a gateway with two workers and the plugin. @param args further arguments */
async function startGateway(t: TestContext, ...args: readonly string[]) {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const [root, plugin, config] = ["root", "faults.mjs", "gateway.json"].map((name) => join(path, name)) as [
    string,
    string,
    string,
  ];
  await writeFile(plugin, pluginOf(join(path, "held")));
  await writeFile(config, "{}");
  const program = startProgram(
    ...["serve", "--root", root, "--port", "0", "--plugin", plugin, "--workers", "2", "--config", config],
    ...args,
  );
  t.onTestFinished(() => void program.child.kill("SIGKILL"));
  let stderr = "";
  program.child.stderr?.on("data", (piece) => {
    stderr += piece;
  });
  const port = await program.listening();
  const agents: Agent[] = [];
  t.onTestFinished(() => {
    for (const agent of agents) agent.destroy();
  });

  /** Connects to a worker. @param wanted its name. Default: any */
  async function connect(wanted?: string): Promise<{ readonly agent: Agent; readonly name: string }> {
    for (;;) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      agents.push(agent);
      const answer = await sendHttp(port, { method: "GET", path: "/test/thread", agent }).catch(ignoreReset);
      const name = answer && String(jsonOf(answer)["name"]);
      if (name !== undefined && (wanted === undefined || name === wanted)) return { agent, name };
      agent.destroy();
      // A worker that starts needs the time that thousands of connections would take from it.
      await sleep(ATTEMPTS_MS);
    }
  }
  return { port, path, root, program, stderr: () => stderr, connect };
}

/** Begins a merge, which reads the rows of the table. */
function merge(port: number, agent: Agent) {
  return sendHttp(port, {
    path: "/v1/table/slow/merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true",
    agent,
    body: personStream(people(5)),
    headers: ARROW_TYPE,
  });
}

/** Replaces the rows of the only table by a pipe, and returns its path. */
async function replaceRowsByPipe(root: string): Promise<string> {
  const files = await readdir(root, { recursive: true });
  const rows = files.find(
    (file) => file.includes("slow") && file.endsWith(".lance") && file.includes("/data/"),
  );
  assert.ok(rows, files.join());
  const place = join(root, rows);
  await rename(place, `${place}.was`);
  execFileSync("mkfifo", [place]);
  return place;
}

/** Whether a thread of a process waits for the writer of a pipe. */
async function waitsInPipe(pid: number | undefined): Promise<boolean> {
  const threads = `/proc/${pid}/task`;
  const waits = (await readdir(threads)).map((thread) => readFile(join(threads, thread, "wchan"), "utf8"));
  return (await Promise.allSettled(waits)).some(
    (wait) => wait.status === "fulfilled" && wait.value === "wait_for_partner",
  );
}

/** Names the thread of a connection, ends it on demand, and holds up the start of replacements while a file exists. */
const pluginOf = (held: string) => `
  import { existsSync, writeSync } from "node:fs";
  import { setTimeout as sleep } from "node:timers/promises";
  import { threadName, workerData } from "node:worker_threads";
  if (workerData?.isReplacement && existsSync(${JSON.stringify(held)})) {
    writeSync(2, "a replacement starts\\n");
    while (existsSync(${JSON.stringify(held)})) await sleep(20);
  }
  export default {
    fastify(app, _options, done) {
      app.get("/test/thread", () => ({ name: threadName }));
      app.get("/test/throw", () => {
        setImmediate(() => { throw new Error("nobody catches this"); });
        return new Promise(() => {});
      });
      done();
    },
  };
`;

const ARROW_TYPE = { "content-type": "application/vnd.apache.arrow.stream" };

/** Has the first worker open its backend only when a file is gone, and ends the second one while another file exists. */
const slowlyOpened = (held: string) => `
  import { existsSync, writeSync } from "node:fs";
  import { setTimeout as sleep } from "node:timers/promises";
  import { threadName } from "node:worker_threads";
  const end = ${JSON.stringify(`${held} worker 2`)};
  const ending = setInterval(() => {
    if (threadName !== "worker 2" || !existsSync(end)) return;
    clearInterval(ending);
    throw new Error("nobody catches this");
  }, 10);
  async function open({ options }) {
    writeSync(2, threadName + " opens version " + options.version + "\\n");
    while (threadName === "worker 1" && existsSync(${JSON.stringify(held)})) await sleep(10);
    return { name: "slow", operations: {}, ready: async () => true, async close() {} };
  }
  export default { backends: { slow: open } };
`;
