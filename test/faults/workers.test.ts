import assert from "node:assert/strict";
import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { ignoreReset, jsonOf, type RawRequest, sendHttp } from "../support/http.ts";
import { type Program, startProgram } from "../support/program.ts";

const WORKERS = 2;
/** Time between connections while a worker is missing, in milliseconds. */
const ATTEMPTS_MS = 50;

/** Names the thread that serves a connection, and injects faults into it. */
const PLUGIN = `
  import { threadId, threadName } from "node:worker_threads";
  export default {
    interceptors: [
      async (call, request, next) => {
        const after = call.headers["x-test-throw-after"];
        if (after !== undefined) setTimeout(() => { throw new Error("nobody catches this in time"); }, Number(after));
        const answer = await next(call, request);
        if (call.headers["x-test-end"] === undefined) return answer;
        setImmediate(() => { throw new Error("nobody catches this either"); });
        return new Promise(() => {});
      },
    ],
    fastify(app, _options, done) {
      app.get("/test/thread", () => ({ thread: threadId, name: threadName }));
      app.get("/test/throw", () => {
        setImmediate(() => { throw new Error("nobody catches this"); });
        return new Promise(() => {});
      });
      app.get("/test/block", () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
      done();
    },
  };
`;

/** A client with a single connection, and so a single worker. */
interface Connection {
  readonly thread: number;
  /** Name of the thread, which a worker inherits from the one that it replaces. */
  readonly name: string;
  readonly agent: Agent;
  send(method: string, path: string, body?: string | Uint8Array): Promise<Record<string, unknown>>;
}

describe("a gateway with workers", () => {
  let directory: { path: string; remove(): Promise<void> };
  let program: Program;
  let port: number;
  const agents: Agent[] = [];
  let stderr = "";

  beforeAll(async () => {
    directory = await temporaryDirectory();
    const plugin = join(directory.path, "faults.mjs");
    await writeFile(plugin, PLUGIN);
    const root = join(directory.path, "root");
    program = startProgram(
      ...["serve", "--root", root, "--port", "0", "--plugin", plugin, "--max-staleness", "3600000"],
      ...["--workers", String(WORKERS), "--worker-timeout", "4s"],
    );
    program.child.stderr?.on("data", (piece) => {
      stderr += piece;
    });
    port = await program.listening();
  });
  afterAll(async () => {
    for (const agent of agents) agent.destroy();
    program.child.kill("SIGKILL");
    await directory.remove();
  });

  async function connect(): Promise<Connection> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    agents.push(agent);
    const send: Connection["send"] = async (method, path, body) => {
      const headers: RawRequest["headers"] = { "content-type": TYPES[typeof body] ?? "" };
      const answer = await sendHttp(port, { method, path, agent, body, headers });
      return answer.bytes.length === 0 ? {} : jsonOf(answer);
    };
    const { thread, name } = await send("GET", "/test/thread");
    return { thread: thread as number, name: name as string, agent, send };
  }
  /** Opens connections until there is one to each worker, and closes the others, whose number has a limit. */
  async function connectToAll(): Promise<readonly Connection[]> {
    const found = new Map<number, Connection>();
    while (found.size < WORKERS) {
      const connection = await connect().catch(ignoreReset);
      const again = connection && found.get(connection.thread);
      if (connection !== undefined) found.set(connection.thread, connection);
      if (connection !== undefined && again === undefined) continue;
      again?.agent.destroy();
      // A worker that starts needs the time that thousands of connections would take from it.
      await sleep(ATTEMPTS_MS);
    }
    return [...found.values()];
  }
  /** Begins an upload; resolves when a worker has asked for its body. */
  async function beginUpload(agent: Agent, table: string) {
    const headers = { expect: "100-continue" };
    const where = { host: "127.0.0.1", port, method: "POST", path: `/v1/table/${table}/create` };
    const outgoing = request({ ...where, agent, headers });
    const answered = new Promise<number>((resolve) => {
      outgoing.once("error", () => resolve(0));
      outgoing.once("response", (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
    });
    outgoing.flushHeaders();
    await once(outgoing, "continue");
    return { outgoing, answered };
  }
  async function page(path: string): Promise<string> {
    return (await sendHttp(port, { method: "GET", path })).bytes.toString();
  }
  async function metric(series: string): Promise<number> {
    const text = await page("/metrics");
    assert.match(text, /^lance_gateway_workers /m, `${text}\n${stderr}`);
    const line = text.split("\n").find((each) => each.startsWith(`${series} `));
    return Number(line?.slice(series.length));
  }

  test("a read through any worker sees what another worker has acknowledged, even with an allowed staleness", async () => {
    const workers = await connectToAll();
    for (let round = 0; round < 10; round++) {
      for (const writer of workers) {
        const name = `n${round}-${writer.thread}`;
        await writer.send("POST", `/v1/namespace/${name}/create`, "{}");
        for (const reader of workers) {
          const { namespaces } = await reader.send("GET", "/v1/namespace/$/list");
          assert.ok((namespaces as string[]).includes(name), `${reader.thread} sees ${name}`);
        }
      }
    }
  });

  test("merges of one key through all workers insert it once", async () => {
    const workers = await connectToAll();
    const rows = personStream(people(5));
    await workers[0]?.send("POST", "/v1/table/merged/create", personStream(people(0)));
    const merge =
      "/v1/table/merged/merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true";
    const merges = Array.from({ length: 4 }, () => workers.map(({ send }) => send("POST", merge, rows)));
    await Promise.all(merges.flat());
    const answer = await sendHttp(port, {
      path: "/v1/table/merged/count_rows",
      body: "{}",
      headers: JSON_TYPE,
    });
    assert.equal(answer.bytes.toString(), "5");
  });

  test("every page of metrics has the calls of all workers, and the process once", async () => {
    const workers = await connectToAll();
    const series =
      'lance_gateway_calls_total{operation="NamespaceExists",protocol="rest",code="OK",database=""}';
    const before = (await metric(series)) || 0;
    for (const { send } of workers) {
      await send("POST", "/v1/namespace/n0-x/create", "{}");
    }
    for (const { send } of workers) await send("POST", "/v1/namespace/n0-x/exists", "{}");
    for (let look = 0; look < 4; look++) assert.equal(await metric(series), before + WORKERS);
    assert.equal(await metric("lance_gateway_workers"), WORKERS);
    const text = await page("/metrics");
    assert.equal(text.match(/^process_resident_memory_bytes /gm)?.length, 1);
    assert.ok((await metric("process_resident_memory_bytes")) < 4e9);
  });

  for (const [path, reason] of [
    ["/test/throw", "ended"],
    ["/test/block", "blocked"],
  ] as const) {
    test(`a worker that has ${reason} loses its own connections, and is replaced`, async () => {
      const [victim, other] = await connectToAll();
      assert.ok(victim && other);
      const replaced = `lance_gateway_workers_replaced_total{reason="${reason}"}`;
      const calls =
        'lance_gateway_calls_total{operation="ListNamespaces",protocol="rest",code="OK",database=""}';
      const [replacedBefore, callsBefore] = [await metric(replaced), (await metric(calls)) || 0];
      await assert.rejects(victim.send("GET", path));
      assert.ok((await other.send("GET", "/v1/namespace/$/list"))["namespaces"]);
      const workers = await connectToAll();
      assert.ok(workers.every(({ thread }) => thread !== victim.thread));
      // A new worker accepts connections a moment before it says that it is ready.
      const readiness = async () => (await sendHttp(port, { method: "GET", path: "/readyz" })).status;
      await expect.poll(readiness).toBe(200);
      assert.equal(await metric(replaced), replacedBefore + 1);
      assert.equal(await metric(calls), callsBefore + 1);
      await expect
        .poll(() => stderr)
        .toMatch(new RegExp(`"reason":"${reason}".*"msg":"a worker is replaced"`));
    });
  }

  test("a call with an idempotency key whose worker has ended in it counts as ended, and not as running", async () => {
    const [victim, other] = await connectToAll();
    assert.ok(victim && other);
    const create = (agent: Agent, more: Readonly<Record<string, string>>) =>
      sendHttp(port, {
        path: "/v1/namespace/keyed/create",
        agent,
        body: "{}",
        headers: { ...JSON_TYPE, "idempotency-key": "once", ...more },
      });
    await assert.rejects(create(victim.agent, { "x-test-end": "1" }));
    const again = async () => {
      const { status, bytes } = await create(other.agent, {});
      assert.equal(status, 409);
      return bytes.toString();
    };
    // The worker closes its connections before it ends.
    await expect.poll(again).toMatch(/ended without a known outcome/);
    await connectToAll();
  });

  test("changes through the other workers go on when the worker that commits for all ends", async () => {
    const workers = await connectToAll();
    const committer = workers.find(({ name }) => name === "worker 1");
    const other = workers.find(({ name }) => name === "worker 2");
    assert.ok(committer && other);
    const acknowledged: string[] = [];
    let ended = false;
    const ending = expect
      .poll(() => acknowledged.length)
      .toBeGreaterThan(10)
      .then(() => assert.rejects(committer.send("GET", "/test/throw")))
      .finally(() => {
        ended = true;
      });
    for (let number = 0, after = 0; after < 20; number++) {
      const name = `go-on-${number}`;
      const answer = await other.send("POST", `/v1/namespace/${name}/create`, "{}");
      if (answer["error"] === undefined) acknowledged.push(name);
      else assert.match(String(answer["error"]), /may be stored or not/);
      if (ended) after++;
    }
    await ending;
    assert.ok(acknowledged.length >= 20 + 10 - 1, `${acknowledged.length} changes were acknowledged`);
    for (const { send } of await connectToAll()) {
      const answer = await send("GET", "/v1/namespace/$/list");
      const namespaces = (answer["namespaces"] ?? []) as string[];
      for (const name of acknowledged)
        assert.ok(namespaces.includes(name), `${name} in ${JSON.stringify(answer)}`);
    }
  });

  test("log lines have the number of their worker", async () => {
    const numbers = [...stderr.matchAll(/"worker":(\d+)/g)].map(([, number]) => Number(number));
    assert.ok(numbers.every((number) => number >= 1 && number <= WORKERS));
    assert.ok(stderr.split("\n").every((line) => line === "" || JSON.parse(line)));
  });

  // Late, because each end of a worker doubles the pause before its next replacement.
  test("a worker that ends while the engine works for it loses its own connections alone", async () => {
    const [other] = await connectToAll();
    assert.ok(other);
    await other.send("POST", "/v1/table/busy/create", personStream(people(1)));
    const rows = personStream(people(100_000));
    for (const delay of ["50", "100", "200", "400"]) {
      const victim: Connection | undefined = (await connectToAll()).find(
        ({ thread }) => thread !== other.thread,
      );
      assert.ok(victim);
      const merge = sendHttp(port, {
        path: MERGE,
        agent: victim.agent,
        body: rows,
        headers: { ...ARROW_TYPE, "x-test-throw-after": delay },
      });
      await merge.catch(() => {});
      await expect.poll(() => stderr).toMatch(/nobody catches this in time.*a worker is replaced/s);
      stderr = "";
    }
    await connectToAll();
    assert.equal(program.child.exitCode ?? program.child.signalCode, null);
    assert.equal((await other.send("GET", "/test/thread"))["thread"], other.thread);
  });

  test("SIGTERM lets the running calls of all workers finish, and ends with code 0", async () => {
    const workers = await connectToAll();
    const uploads = await Promise.all(
      workers.map(({ agent, thread }) => beginUpload(agent, `late${thread}`)),
    );
    program.child.kill("SIGTERM");
    for (const { outgoing } of uploads) outgoing.end(personStream(people(3)));
    for (const { answered } of uploads) assert.equal(await answered, 200);
    const { code, signal } = await program.ended;
    assert.deepEqual([code, signal], [0, null]);
  });
});

test("a worker that is blocked does not hold up the end of the process", async ({ onTestFinished }) => {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const plugin = join(path, "block.mjs");
  await writeFile(plugin, BLOCKING_PLUGIN);
  const program = startProgram(
    ...["serve", "--root", join(path, "root"), "--port", "0", "--plugin", plugin],
    ...["--workers", String(WORKERS), "--worker-timeout", "2s"],
  );
  onTestFinished(() => void program.child.kill("SIGKILL"));
  let stderr = "";
  program.child.stderr?.on("data", (piece) => {
    stderr += piece;
  });
  const port = await program.listening();
  const call = sendHttp(port, { method: "GET", path: "/test/block" });
  const lost = assert.rejects(call);
  await expect.poll(() => stderr).toContain("blocked");
  program.child.kill("SIGTERM");
  const { code, signal } = await program.ended;
  assert.deepEqual([code, signal], [0, null]);
  await lost;
});

test("the end of a drain waits for the engine, whose calls would abort the process", async ({
  onTestFinished,
}) => {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const program = startProgram(
    ...["serve", "--root", join(path, "root"), "--port", "0"],
    ...["--workers", String(WORKERS), "--drain-seconds", "0"],
  );
  onTestFinished(() => void program.child.kill("SIGKILL"));
  const port = await program.listening();
  await sendHttp(port, { path: "/v1/table/busy/create", body: personStream(people(1)), headers: ARROW_TYPE });
  const body = personStream(people(100_000));
  // They run one after the other, so that others run when the first one has ended.
  const merges = Array.from({ length: 6 }, () => sendHttp(port, { path: MERGE, body, headers: ARROW_TYPE }));
  await Promise.race(merges);
  program.child.kill("SIGTERM");
  const { code, signal } = await program.ended;
  assert.deepEqual([code, signal], [0, null]);
  await Promise.allSettled(merges);
});

test("a gateway goes on when all of its workers end again and again at the same time", async ({
  onTestFinished,
}) => {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const [plugin, doom] = [join(path, "doom.mjs"), join(path, "doom")];
  await writeFile(plugin, doomingPlugin(doom));
  const program = startProgram(
    ...["serve", "--root", join(path, "root"), "--port", "0", "--plugin", plugin],
    ...["--workers", String(WORKERS)],
  );
  onTestFinished(() => void program.child.kill("SIGKILL"));
  let stderr = "";
  program.child.stderr?.on("data", (piece) => {
    stderr += piece;
  });
  const port = await program.listening();
  await writeFile(doom, "");
  const ends = () => stderr.match(/"msg":"a worker (?:is replaced|cannot be started)"/g)?.length ?? 0;
  // From the second end on, both pause before they start again.
  await Promise.race([expect.poll(ends).toBeGreaterThanOrEqual(3 * WORKERS), program.ended]);
  await rm(doom);
  const ready = async () => {
    const answer = await sendHttp(port, { method: "GET", path: "/readyz" }).catch(() => undefined);
    return [answer?.status, program.child.exitCode];
  };
  await Promise.race([expect.poll(ready).toEqual([200, null]), program.ended]);
  assert.deepEqual(await ready(), [200, null]);
});

/** Has every worker throw while a file exists. */
const doomingPlugin = (file: string) => `
  import { existsSync } from "node:fs";
  import { isMainThread } from "node:worker_threads";
  if (!isMainThread)
    setInterval(() => { if (existsSync(${JSON.stringify(file)})) throw new Error("doomed"); }, 20);
  export default { interceptors: [] };
`;

/** Blocks a worker, and says so first. */
const BLOCKING_PLUGIN = `
  import { writeSync } from "node:fs";
  export default {
    fastify(app, _options, done) {
      app.get("/test/block", () => {
        writeSync(2, "blocked\\n");
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      });
      done();
    },
  };
`;

const MERGE =
  "/v1/table/busy/merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true";
const ARROW_TYPE = { "content-type": "application/vnd.apache.arrow.stream" };
const JSON_TYPE = { "content-type": "application/json" };
/** Content types by the types of bodies. */
const TYPES: Readonly<Record<string, string>> = {
  undefined: "application/json",
  string: "application/json",
  object: ARROW_TYPE["content-type"],
};
