import assert from "node:assert/strict";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { test, vi } from "vitest";
import { silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import {
  clock,
  counted,
  ended,
  endless,
  gate,
  jobsOn,
  request,
  storeIn,
} from "../../../../test/fixtures/dir/jobs.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { createStorageClock } from "../format/storage-clock.ts";
import type { Job } from "./job.ts";
import { createJobs, type Jobs } from "./jobs.ts";
import type { JobWork } from "./running-jobs.ts";
import { findJobFiles, type JobStore } from "./store.ts";

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

test("the job of a process that died is taken up by exactly one other when its lease is over", async (t) => {
  const { store, looks } = counted(storeIn(await temporaryDirectory(t)));
  // The test moves the time, so that no lease ends on a busy machine.
  let now = Date.now();
  vi.spyOn(Date, "now").mockImplementation(() => now);
  t.onTestFinished(() => void vi.restoreAllMocks());
  const lease = { owner: "dead", until: now + 100 };
  const id = "00000000-0000-4000-8000-000000000000";
  await store.put({ ...request("count"), id, state: "running", createdAt: 1, attempts: 1, lease });
  let runs = 0;
  const count: JobWork = async () => ({ runs: ++runs });
  const others = [jobsOn(t, store, { count }, 100), jobsOn(t, store, { count }, 100)];
  await looks(6);
  assert.equal(runs, 0);
  now += 3_600_000;
  assert.deepEqual((await ended(others[0] as Jobs, id)).result, { runs: 1 });
  await looks(6);
  assert.equal(runs, 1);
});

test("the job of a process that died is taken up though the clock was set back by hours since", async (t) => {
  const store = storeIn(await temporaryDirectory(t));
  const id = "00000000-0000-4000-8000-000000000003";
  const later = Date.now() + 3 * 3_600_000;
  const facts = { state: "running", createdAt: later, startedAt: later, attempts: 1, begun: 1 } as const;
  await store.put({ ...request("quick"), ...facts, id, lease: { owner: "dead", until: later + 100 } });
  // Another process that died between its claim and its first note of it.
  assert.equal(await store.claim({ ...request("quick"), ...facts, id }, 2), true);
  const jobs = createJobs({ store, clock, log: silent, leaseMs: 100, retryMs: 100 });
  t.onTestFinished(() => jobs.close());
  jobs.define("quick", async ({ attempts }) => ({ attempts }));
  jobs.start();
  assert.deepEqual((await ended(jobs, id)).result, { attempts: 3 });
});

test("a job is left to a process that renews its lease after the clock was set back", async (t) => {
  const inner = storeIn(await temporaryDirectory(t));
  const id = "00000000-0000-4000-8000-000000000004";
  let until = Date.now() + 3 * 3_600_000;
  // Every look at the jobs meets a new lease, which is the sooner over the more often the clock is set back.
  const { store, looks } = counted({
    ...inner,
    listOpen: async (onDamaged) =>
      (await inner.listOpen(onDamaged)).map((job) => ({ ...job, lease: { owner: "b", until: --until } })),
  });
  await inner.put({ ...request("quick"), id, state: "running", createdAt: 1, attempts: 1 });
  jobsOn(t, store, { quick: () => assert.fail("it is taken over") }, 30);
  await looks(8);
  assert.equal((await inner.get(id))?.attempts, 1);
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

const TAKEN = { attempts: 2, lease: { owner: "other", until: Date.now() + 60_000 } } as const;
const DONE = { ...TAKEN, state: "succeeded", finishedAt: 2, lease: undefined, result: { rows: 2 } } as const;
for (const [end, taken] of [
  ["fails", TAKEN],
  ["fails", DONE],
  ["closes", TAKEN],
  ["is cancelled", TAKEN],
] as const)
  test(`a process that ${end} after a pause leaves its job to the one that ${taken === DONE ? "has done it" : "took it over"}`, async (t) => {
    const store = storeIn(await temporaryDirectory(t));
    const [resumed, resume] = gate();
    const fail: JobWork = async () => {
      await resumed;
      throw new LanceError("ServiceUnavailable", "the connection is too old");
    };
    const jobs = jobsOn(t, store, { work: end === "fails" ? fail : endless });
    const { id } = await jobs.submit(request("work"));
    while ((await store.get(id))?.state !== "running") await sleep(5);
    const other: Job = { ...((await store.get(id)) as Job), ...taken };
    await (taken === DONE ? store.finish(other) : store.put(other));
    resume();
    if (end === "closes") await jobs.close();
    if (end === "is cancelled") await jobs.cancel(id);
    while (jobs.active().length > 0) await sleep(5);
    assert.deepEqual(await store.get(id), JSON.parse(JSON.stringify(other)));
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
  let [isAtWork, renewals] = [false, 0];
  const store: JobStore = {
    ...inner,
    async isCancelRequested(id) {
      // Once the work has begun, only renewals look.
      if (isAtWork) {
        renewals++;
        await held;
      }
      return inner.isCancelRequested(id);
    },
  };
  const work: JobWork = (job, signal) => {
    isAtWork = true;
    return endless(job, signal);
  };
  const jobs = jobsOn(t, store, { endless: work }, 30);
  const { id } = await jobs.submit(request("endless"));
  while (renewals === 0) await sleep(1);
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

test("a process ends the cancelled jobs of a kind that it does not run, and leaves the others", async (t) => {
  const { store, looks } = counted(storeIn(await temporaryDirectory(t)));
  const facts = { ...request("elsewhere"), state: "queued", attempts: 1 } as const;
  const [cancelled, open]: [Job, Job] = [
    { ...facts, createdAt: 1, id: "00000000-0000-4000-8000-000000000011" },
    { ...facts, createdAt: 2, id: "00000000-0000-4000-8000-000000000012" },
  ];
  for (const job of [cancelled, open]) await store.put(job);
  await store.requestCancel(cancelled.id);
  const jobs = jobsOn(t, store, {}, 30);
  assert.equal((await ended(jobs, cancelled.id)).state, "cancelled");
  await looks(3);
  assert.deepEqual(await store.get(open.id), open);
});

test("a process does not fail a job that it cannot run and whose request to cancel it is gone", async (t) => {
  const inner = storeIn(await temporaryDirectory(t));
  let asked = 0;
  const store = { ...inner, isCancelRequested: async () => ++asked === 1 };
  const id = "00000000-0000-4000-8000-000000000013";
  await store.put({ ...request("elsewhere"), id, state: "queued", createdAt: 1, attempts: 1 });
  const jobs = jobsOn(t, store, {}, 30);
  while (asked < 2 || jobs.active().length > 0) await sleep(5);
  assert.equal((await store.get(id))?.finishedAt, undefined);
});
