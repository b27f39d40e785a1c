import assert from "node:assert/strict";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { type TestContext, test, vi } from "vitest";
import { LanceError } from "../../../namespace/errors.ts";
import { createLocalStore } from "../format/local-store.ts";
import { createStorageClock } from "../format/storage-clock.ts";
import { silent, temporaryDirectory } from "../test-support.ts";
import type { Job } from "./job.ts";
import { createJobs, type Jobs, type JobWork } from "./jobs.ts";
import { createJobStore, findJobFiles, JOBS_DIRECTORY, type JobStore } from "./store.ts";

/** The storage and the process share a clock in these tests. */
const clock = { now: async () => Date.now() };

const storeIn = (path: string) => createJobStore(createLocalStore(path), JOBS_DIRECTORY);

/** Returns a promise, and a function that resolves it. */
function gate(): [promise: Promise<void>, open: () => void] {
  const { promise, resolve } = Promise.withResolvers<void>();
  return [promise, resolve];
}

function jobsOn(t: TestContext, store: JobStore, works: Record<string, JobWork>, leaseMs = 60_000): Jobs {
  const jobs = createJobs({ store, clock, log: silent, leaseMs, maxRunning: 1 });
  for (const [kind, work] of Object.entries(works)) jobs.define(kind, work);
  jobs.start();
  t.onTestFinished(() => jobs.close());
  return jobs;
}

/** Returns a store that resolves `looks` after a number of further requests for the open jobs. */
function counted(store: JobStore) {
  let count = 0;
  const looks = async (more: number) => {
    for (const until = count + more; count < until; ) await sleep(5);
  };
  const listOpen = () => {
    count++;
    return store.listOpen();
  };
  return { store: { ...store, listOpen }, looks };
}

async function ended(jobs: Jobs, id: string): Promise<Job> {
  for (;;) {
    const job = await jobs.get(id);
    if (job?.finishedAt !== undefined) return job;
    await sleep(5);
  }
}

/** Runs until it is stopped. */
const endless: JobWork = (_, signal) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

const request = (kind: string) => ({ kind, table: ["a", "b"], spec: { column: "c" } });

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

test("a job that a closing process leaves is taken up by the next one at once", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const first = jobsOn(t, store, { endless });
  const { id } = await first.submit(request("endless"));
  while ((await first.get(id))?.state !== "running") await sleep(5);
  await first.close();
  assert.deepEqual([(await store.get(id))?.state, (await store.get(id))?.lease], ["queued", undefined]);
  const second = jobsOn(t, store, { endless: async ({ attempts }) => ({ attempts }) });
  assert.deepEqual((await ended(second, id)).result, { attempts: 2 });
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

test("the job of a process that died is taken up by exactly one other when its lease is over", async (t) => {
  const { store, looks } = counted(storeIn(await temporaryDirectory(t)));
  // The test moves the time, so that no lease ends on a busy machine.
  let now = Date.now();
  vi.spyOn(Date, "now").mockImplementation(() => now);
  t.onTestFinished(() => void vi.restoreAllMocks());
  const lease = { owner: "dead", until: now + 3_600_000 };
  const id = "00000000-0000-4000-8000-000000000000";
  await store.put({ ...request("count"), id, state: "running", createdAt: 1, attempts: 1, lease });
  let runs = 0;
  const count: JobWork = async () => ({ runs: ++runs });
  const others = [jobsOn(t, store, { count }, 100), jobsOn(t, store, { count }, 100)];
  await looks(6);
  assert.equal(runs, 0);
  now += 2 * 3_600_000;
  assert.deepEqual((await ended(others[0] as Jobs, id)).result, { runs: 1 });
  await looks(6);
  assert.equal(runs, 1);
});

test("a process that died between its claim and its first note of it does not keep the job", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const id = "00000000-0000-4000-8000-000000000002";
  const job: Job = { ...request("quick"), id, state: "queued", createdAt: 1, attempts: 1 };
  await store.put(job);
  assert.equal(await store.claim(job, 2), true);
  const jobs = jobsOn(t, store, { quick: async ({ attempts }) => ({ attempts }) }, 100);
  assert.deepEqual((await ended(jobs, id)).result, { attempts: 3 });
});

test("a job whose processes keep dying is given up", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const id = "00000000-0000-4000-8000-000000000001";
  await store.put({ ...request("deadly"), id, state: "running", createdAt: 1, attempts: 2, begun: 2 });
  const jobs = jobsOn(t, store, { deadly: async () => assert.fail("it is begun again") });
  assert.equal((await ended(jobs, id)).state, "failed");
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

test("jobs whose process died rest before they are begun again, and then run one at a time", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const startedAt = Date.now();
  const retryMs = 300;
  const ids = [1, 2, 3].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
  const died = {
    ...request("careful"),
    state: "running",
    createdAt: 1,
    startedAt,
    attempts: 1,
    begun: 1,
  } as const;
  for (const id of ids) await store.put({ ...died, id });
  const jobs = createJobs({ store, clock, log: silent, leaseMs: 60, retryMs });
  t.onTestFinished(() => jobs.close());
  let running = 0;
  jobs.define("careful", async (job) => {
    assert.equal(++running, 1);
    assert.ok(Date.now() >= startedAt + retryMs);
    const begun = (await store.get(job.id))?.begun;
    running--;
    return { begun };
  });
  jobs.start();
  for (const id of ids) assert.deepEqual((await ended(jobs, id)).result, { begun: 2 });
});

test("a process that lost its job leaves the record to the other", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const jobs = jobsOn(t, store, { endless }, 90);
  const job = await jobs.submit(request("endless"));
  while ((await jobs.get(job.id))?.state !== "running") await sleep(5);
  const taken = { ...job, attempts: 2, lease: { owner: "other", until: Date.now() + 60_000 } };
  while (jobs.active().length > 0) {
    // A renewal that has already read the record writes it once more.
    await store.put(taken);
    await sleep(5);
  }
  assert.deepEqual(await store.get(job.id), taken);
});

test("ids from outside lead to no other files, and old jobs are forgotten", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const jobs = jobsOn(t, store, { quick: async () => ({}) });
  assert.equal(await jobs.get("../open/x"), undefined);
  const { id } = await jobs.submit(request("quick"));
  await ended(jobs, id);
  await store.prune(Date.now() + 1000);
  assert.equal(await jobs.get(id), undefined);
});

test("a process whose clock is days ahead takes no job of a process that is at work", async (t) => {
  const path = await temporaryDirectory(t);
  const store = storeIn(path);
  const first = jobsOn(t, store, { endless });
  const { id } = await first.submit(request("endless"));
  while ((await first.get(id))?.state !== "running") await sleep(5);
  const real = Date.now;
  t.onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(Date, "now").mockImplementation(() => real() + 3 * 86_400_000);
  const { store: counting, looks } = counted(store);
  const storageClock = createStorageClock(createLocalStore(path), "jobs");
  const second = createJobs({ store: counting, clock: storageClock, log: silent, leaseMs: 100 });
  t.onTestFinished(() => second.close());
  second.define("endless", endless);
  second.start();
  await looks(3);
  assert.deepEqual([second.active(), (await store.get(id))?.attempts], [[], 1]);
});

test("a lease that is renewed while its job ends leaves no record of an open job", async (t) => {
  const directory = await temporaryDirectory(t);
  const inner = storeIn(directory);
  const [released, release] = gate();
  const [done, finishWork] = gate();
  let [renewals, held, writing] = [0, 0, 0];
  const store: JobStore = {
    ...inner,
    async get(id) {
      renewals++;
      return inner.get(id);
    },
    async put(job) {
      writing++;
      // The first renewal stays in transit to the storage.
      if (job.startedAt !== undefined && renewals > 0) {
        held++;
        await released;
      }
      await inner.put(job);
      writing--;
    },
  };
  const jobs = jobsOn(t, store, { slow: () => done.then(() => ({})) }, 30);
  const { id } = await jobs.submit(request("slow"));
  while (held === 0) await sleep(1);
  finishWork();
  // Later renewals meet a job whose end waits behind the first renewal.
  for (const until = renewals + 3; renewals < until; ) await sleep(1);
  release();
  await ended(jobs, id);
  await jobs.close();
  while (writing > 0) await sleep(1);
  assert.deepEqual(await findJobFiles(createLocalStore(directory), ""), []);
});

test("a process that closes waits for the renewal of a lease that is on its way", async (t) => {
  const inner = storeIn(await temporaryDirectory(t));
  const [held, release] = gate();
  let looks = 0;
  const store: JobStore = {
    ...inner,
    async isCancelRequested(id) {
      looks++;
      await held;
      return inner.isCancelRequested(id);
    },
  };
  const jobs = jobsOn(t, store, { endless }, 30);
  const { id } = await jobs.submit(request("endless"));
  while (looks === 0) await sleep(1);
  let isClosed = false;
  const closed = jobs.close().then(() => {
    isClosed = true;
  });
  while ((await inner.get(id))?.state !== "queued" || jobs.active().length > 0) await sleep(1);
  for (let turn = 0; turn < 10; turn++) await nextTurn();
  assert.equal(isClosed, false);
  release();
  await closed;
});
