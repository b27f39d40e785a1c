import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { test } from "vitest";
import { LanceError } from "../../../namespace/errors.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { failsWith, silent, temporaryDirectory } from "../test-support.ts";
import type { Job } from "./job.ts";
import { createJobs } from "./jobs.ts";
import { clock, ended, endless, gate, jobsOn, request, storeIn } from "./jobs-fixture.ts";
import { createJobStore, findJobFiles, JOBS_DIRECTORY, type JobStore } from "./store.ts";

test("a job is stored, done and remembered with its result", async (t) => {
  const jobs = jobsOn(t, storeIn(await temporaryDirectory(t)), { double: async () => ({ rows: 2 }) });
  const { id } = await jobs.submit(request("double"));
  const job = await ended(jobs, id);
  assert.deepEqual(
    [job.state, job.result, job.table, job.lease],
    ["succeeded", { rows: 2 }, ["a", "b"], undefined],
  );
  assert.deepEqual(
    (await jobs.list()).map((each) => each.id),
    [id],
  );
  assert.equal(await jobs.cancel(id), false);
});

test("the end of a job can be awaited, for as long as wanted", async (t) => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const jobs = jobsOn(t, storeIn(await temporaryDirectory(t)), {
    gated: async () => {
      await gate;
      return { rows: 2 };
    },
  });
  const { id } = await jobs.submit(request("gated"));
  assert.equal(await jobs.ended(id, 1), undefined);
  open();
  const job = await jobs.ended(id, 60_000);
  assert.deepEqual([job?.state, job?.result], ["succeeded", { rows: 2 }]);
  assert.equal((await jobs.ended(id, 0))?.state, "succeeded");
  assert.equal(await jobs.ended("nothing", 0), undefined);
});

test("a failure has its name, and an unknown one is opaque", async (t) => {
  const jobs = jobsOn(t, storeIn(await temporaryDirectory(t)), {
    refused: async () => {
      throw new LanceError("TableNotFound", "it is gone");
    },
    broken: async () => {
      throw new Error("secret");
    },
  });
  const refused = await ended(jobs, (await jobs.submit(request("refused"))).id);
  assert.deepEqual(refused.error, { name: "TableNotFound", code: 4, message: "it is gone" });
  const broken = await ended(jobs, (await jobs.submit(request("broken"))).id);
  assert.equal(broken.error?.name, "Internal");
  assert.doesNotMatch(broken.error?.message ?? "", /secret/);
});

test("a job can be cancelled while it runs and while it waits, also by another process", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const jobs = jobsOn(t, store, { endless }, 60);
  const [running, waiting, other] = [
    await jobs.submit(request("endless")),
    await jobs.submit(request("endless")),
    await jobs.submit(request("endless")),
  ];
  assert.equal(await jobs.cancel(waiting.id), true);
  assert.equal((await ended(jobs, waiting.id)).startedAt, undefined);
  assert.equal(await jobs.cancel(running.id), true);
  assert.equal((await ended(jobs, running.id)).state, "cancelled");
  await createJobs({ store, clock, log: silent }).cancel(other.id);
  assert.equal((await ended(jobs, other.id)).state, "cancelled");
});

test("a job that is stopped while its start is being written does not begin", async (t) => {
  const files = storeIn(await temporaryDirectory(t));
  const { promise: starting, resolve: start } = Promise.withResolvers<void>();
  const { promise: written, resolve: write } = Promise.withResolvers<void>();
  const store: JobStore = {
    ...files,
    async put(job) {
      await files.put(job);
      if (job.state !== "running") return;
      start();
      await written;
    },
  };
  const jobs = jobsOn(t, store, { endless });
  const { id } = await jobs.submit(request("endless"));
  await starting;
  const closed = jobs.close();
  write();
  await closed;
  assert.equal((await files.get(id))?.state, "queued");
});

test("a job whose success cannot be written is done again, and never called failed", async (t) => {
  const files = storeIn(await temporaryDirectory(t));
  const states: string[] = [];
  const store: JobStore = {
    ...files,
    async finish(job) {
      states.push(job.state);
      await files.finish(job);
      if (states.length === 1) throw new LanceError("ServiceUnavailable", "the answer is lost");
    },
  };
  const jobs = jobsOn(t, store, { quick: async () => ({ rows: 2 }) });
  const { id } = await jobs.submit(request("quick"));
  while (jobs.active().length > 0) await sleep(5);
  assert.deepEqual([states, (await files.get(id))?.state], [["succeeded"], "succeeded"]);

  const refusing: JobStore = {
    ...files,
    async finish(job) {
      states.push(job.state);
      throw new LanceError("ServiceUnavailable", "it is not written");
    },
  };
  const first = jobsOn(t, refusing, { quick: async () => ({ rows: 2 }) }, 100);
  const left = await first.submit(request("quick"));
  while (first.active().length > 0) await sleep(5);
  await first.close();
  const second = createJobs({ store: files, clock, log: silent, leaseMs: 100, retryMs: 0 });
  t.onTestFinished(() => second.close());
  second.define("quick", async () => ({ rows: 3 }));
  second.start();
  assert.deepEqual((await ended(second, left.id)).result, { rows: 3 });
  assert.deepEqual(states, ["succeeded", "succeeded"]);
});

test("a job whose record is being written when its process closes is left to the next process", async (t) => {
  const files = storeIn(await temporaryDirectory(t));
  const [writing, begin] = gate();
  const [written, write] = gate();
  const store: JobStore = {
    ...files,
    async put(job) {
      begin();
      await written;
      await files.put(job);
    },
  };
  const jobs = jobsOn(t, store, { quick: () => assert.fail("it begins") });
  const submitted = jobs.submit(request("quick"));
  await writing;
  await jobs.close();
  write();
  const { id } = await submitted;
  assert.deepEqual(jobs.active(), []);
  assert.deepEqual([(await files.get(id))?.state, (await files.get(id))?.lease], ["queued", undefined]);
});

test("a request to cancel a job that ends at that moment leaves nothing behind", async (t) => {
  const directory = await temporaryDirectory(t);
  const store = storeIn(directory);
  const jobs = jobsOn(t, store, { quick: async () => ({}) });
  const { id } = await jobs.submit(request("quick"));
  await ended(jobs, id);
  while (jobs.active().length > 0) await sleep(5);
  await store.requestCancel(id);
  assert.deepEqual(await findJobFiles(createLocalStore(directory), ""), []);
});

test("the work of a job is counted before it begins, and closes and waiting do not count", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  let ids: string[] = [];
  for (let round = 0; round < 4; round++) {
    const jobs = jobsOn(t, store, { endless });
    if (round === 0)
      ids = [(await jobs.submit(request("endless"))).id, (await jobs.submit(request("endless"))).id];
    let states: (number | undefined)[] = [];
    while (!states.includes(1))
      states = await Promise.all(ids.map(async (id) => (await store.get(id))?.begun));
    assert.equal(states.filter((begun) => begun === 1).length, 1);
    await jobs.close();
    for (const id of ids) assert.equal((await store.get(id))?.begun ?? 0, 0);
  }
});

test("a damaged record is reported by its name", async (t) => {
  const path = await temporaryDirectory(t);
  const [store, id] = [storeIn(path), randomUUID()];
  for (const text of ["", "{", "null", "{}", `{"id":"${id}"}`, `{"id":"${id}","spec":null}`]) {
    await createLocalStore(path).put(`${JOBS_DIRECTORY}/done/${id}.json`, Buffer.from(text));
    const isNamed = (e: Error) => failsWith("DataLoss")(e) && e.message.startsWith(`${id}.json `);
    await assert.rejects(store.get(id), isNamed, text);
  }
});

test("a damaged record of one job leaves the others in the list, and the log names it once", async (t) => {
  const path = await temporaryDirectory(t);
  const store = storeIn(path);
  const logged: { job?: string }[] = [];
  const log = pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const jobs = createJobs({ store, clock, log });
  const facts = { ...request("quick"), createdAt: 1, attempts: 1 };
  const [done, open] = [randomUUID(), randomUUID()];
  await store.finish({ ...facts, id: done, state: "succeeded", finishedAt: 2 });
  await store.put({ ...facts, id: open, state: "queued", createdAt: 3 });
  const damaged: string[] = [];
  for (const folder of ["open", "done"]) {
    for (const content of [
      {},
      { ...facts, spec: null },
      { ...facts, table: "t" },
      { ...facts, createdAt: "" },
    ]) {
      const id = randomUUID();
      const record = Buffer.from(JSON.stringify({ state: "queued", ...content, id }));
      await createLocalStore(path).put(`${JOBS_DIRECTORY}/${folder}/${id}.json`, record);
      damaged.push(id);
    }
  }
  for (let times = 0; times < 2; times++)
    assert.deepEqual(
      (await jobs.list()).map(({ id }) => id),
      [done, open],
    );
  assert.deepEqual(logged.map(({ job }) => job).sort(), damaged.sort());
});

test("a damaged record of one job leaves others to be taken over and cancelled", async (t) => {
  const path = await temporaryDirectory(t);
  const store = storeIn(path);
  const [damaged, id] = [randomUUID(), randomUUID()];
  await createLocalStore(path).put(`${JOBS_DIRECTORY}/open/${damaged}.json`, Buffer.from("{"));
  await store.put({ ...request("quick"), id, state: "queued", createdAt: 1, attempts: 1 });
  const jobs = jobsOn(t, store, { quick: async () => ({}) });
  assert.equal((await ended(jobs, id)).state, "succeeded");
  assert.deepEqual(await jobs.open(), []);
  await jobs.cancelAt("t.lance");
});

test("ids from outside lead to no other files, and old jobs are forgotten", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const jobs = jobsOn(t, store, { quick: async () => ({}) });
  assert.equal(await jobs.get("../open/x"), undefined);
  const { id } = await jobs.submit(request("quick"));
  await ended(jobs, id);
  await store.prune(Date.now() + 1000, 10);
  assert.equal(await jobs.get(id), undefined);
});

test("the newest of the finished jobs are kept, up to a number", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const jobs = jobsOn(t, store, { quick: async () => ({}) });
  const ids: string[] = [];
  for (let i = 0; i < 4; i++) {
    const { id } = await jobs.submit(request("quick"));
    await ended(jobs, id);
    ids.push(id);
    // The times of the records differ.
    await sleep(5);
  }
  await store.prune(0, 2);
  assert.deepEqual(
    (await store.list(assert.fail)).map(({ id }) => id),
    ids.slice(2),
  );
});

test("a list reads the record of a finished job once, and that of any other each time", async (t) => {
  const files = createLocalStore(await temporaryDirectory(t));
  const read: string[] = [];
  const get: typeof files.get = (key) => {
    read.push(key.replace(/^.*\//, ""));
    return files.get(key);
  };
  const store = createJobStore({ ...files, get }, JOBS_DIRECTORY);
  const [open, done, both] = ["1", "2", "3"].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
  const jobOf = (id = ""): Job => ({ ...request("quick"), id, state: "queued", createdAt: 1, attempts: 1 });
  const end = (id = "", state: Job["state"] = "succeeded") =>
    store.finish({ ...jobOf(id), state, finishedAt: 2 });
  await end(done);
  await end(both, "failed");
  for (const id of [open, both]) await store.put(jobOf(id));
  const statesOf = async () =>
    Object.fromEntries((await store.list(assert.fail)).map(({ id, state }) => [id, state]));
  const listed = { [String(open)]: "queued", [String(done)]: "succeeded", [String(both)]: "failed" };
  assert.deepEqual(await statesOf(), listed);
  read.length = 0;
  assert.deepEqual(await statesOf(), listed);
  assert.ok(!read.includes(`${done}.json`), read.join());
  await end(both);
  assert.deepEqual(await statesOf(), { ...listed, [String(both)]: "succeeded" });
  await store.prune(Date.now() + 1000, 0);
  assert.deepEqual(await statesOf(), { [String(open)]: "queued" });
});

test("records are read a few at a time", async (t) => {
  const files = createLocalStore(await temporaryDirectory(t));
  let [reading, most] = [0, 0];
  const count = async <T>(work: () => Promise<T>): Promise<T> => {
    most = Math.max(most, ++reading);
    return work().finally(() => reading--);
  };
  const store = createJobStore(
    { ...files, get: (key) => count(() => files.get(key)), head: (key) => count(() => files.head(key)) },
    JOBS_DIRECTORY,
  );
  const job: Job = { ...request("quick"), id: "", state: "queued", createdAt: 1, attempts: 1 };
  const idOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
  for (let n = 0; n < 100; n++) {
    if (n < 50) await store.put({ ...job, id: idOf(n) });
    else await store.finish({ ...job, id: idOf(n), state: "succeeded", finishedAt: 2 });
  }
  assert.equal((await store.list(assert.fail)).length, 100);
  assert.equal((await store.listOpen(assert.fail)).length, 50);
  await store.prune(0, 10);
  assert.equal((await store.list(assert.fail)).length, 60);
  assert.ok(most <= 16, `${most} at a time`);
});

test("a job beyond a number of waiting ones is refused, and leaves no record", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const jobs = createJobs({ store, clock, log: silent, maxRunning: 1, maxWaiting: 2 });
  t.onTestFinished(() => jobs.close());
  jobs.define("endless", endless);
  const { id } = await jobs.submit(request("endless"));
  await jobs.submit(request("endless"), "another");
  await assert.rejects(jobs.submit(request("endless"), "a third"), failsWith("Throttling"));
  assert.equal((await store.listOpen(assert.fail)).length, 2);
  await jobs.cancel(id);
  await ended(jobs, id);
  while (jobs.active().length > 1) await sleep(5);
  await jobs.submit(request("endless"));
});

test("the jobs of a caller leave room for as many of the others, and wait for no more than one of each", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const jobs = createJobs({ store, clock, log: silent, maxRunning: 1, maxWaiting: 8 });
  t.onTestFinished(() => jobs.close());
  const [held, release] = gate();
  const order: string[] = [];
  const note = async ({ spec: { column } }: Job) => {
    order.push(String(column));
    await held;
    return {};
  };
  jobs.define("noted", note);
  const submit = (caller: string, column: string) =>
    jobs.submit({ ...request("noted"), spec: { column } }, caller);
  for (const column of ["a1", "a2", "a3", "a4"]) await submit("a", column);
  await assert.rejects(submit("a", "a5"), failsWith("Throttling"));
  const last = await submit("b", "b1");
  const unrecorded = jobs.runUnrecorded(new AbortController().signal, "c", async () => order.push("c1"));
  release();
  await Promise.all([unrecorded, jobs.ended(last.id, 60_000)]);
  while (jobs.active().length > 0) await sleep(5);
  assert.deepEqual(order, ["a1", "a2", "b1", "c1", "a3", "a4"]);
});

test("a job that ended is not open again when its record is removed, though its process died at its end", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const id = "00000000-0000-4000-8000-000000000001";
  const job: Job = { ...request("quick"), id, state: "running", createdAt: 1, attempts: 1, begun: 1 };
  await store.finish({ ...job, state: "succeeded", finishedAt: 2 });
  await store.put(job);
  assert.deepEqual([await store.listOpen(assert.fail), (await store.get(id))?.state], [[], "succeeded"]);
  await store.prune(Date.now() + 1_000, 10);
  assert.deepEqual([await store.listOpen(assert.fail), await store.get(id)], [[], undefined]);
});

test("a job with long parameters is refused, because jobs that wait are in memory", async (t) => {
  const jobs = jobsOn(t, storeIn(await temporaryDirectory(t)), { endless });
  const where = `s = '${"x".repeat(100_000)}'`;
  const long = { ...request("endless"), spec: { where } };
  await assert.rejects(jobs.submit(long), failsWith("InvalidInput"));
  assert.deepEqual(await jobs.list(), []);
});

test("old jobs are removed after each thousand that end, because a caller may make more than are kept in an hour", async (t) => {
  let [ended, pruned] = [0, 0];
  const store: JobStore = {
    ...storeIn(await temporaryDirectory(t)),
    put: async () => {},
    async finish() {
      ended++;
    },
    async prune() {
      pruned++;
    },
  };
  const jobs = jobsOn(t, store, { quick: async () => ({}) });
  for (let count = 1; count <= 2_000; count++) {
    await jobs.submit(request("quick"));
    while (ended < count) await sleep(0);
    assert.ok(pruned <= count / 1_000);
  }
  while (pruned < 2) await sleep(1);
});

test("work that goes on after its job was cancelled keeps its turn, because it takes the engine as before", async (t) => {
  const [begun, begin] = gate();
  const [held, release] = gate();
  let isSecondBegun = false;
  const jobs = jobsOn(t, storeIn(await temporaryDirectory(t)), {
    deaf: async () => {
      begin();
      await held;
      return {};
    },
    second: async () => {
      isSecondBegun = true;
      return {};
    },
  });
  const { id } = await jobs.submit(request("deaf"));
  await begun;
  const second = await jobs.submit(request("second"));
  await jobs.cancel(id);
  assert.equal((await ended(jobs, id)).state, "cancelled");
  assert.equal(isSecondBegun, false);
  release();
  assert.equal((await ended(jobs, second.id)).state, "succeeded");
});
