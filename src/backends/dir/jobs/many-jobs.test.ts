import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { failsWith, silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { clock, ended, endless, gate, jobsOn, request, storeIn } from "../../../../test/fixtures/dir/jobs.ts";
import type { Job } from "./job.ts";
import { createJobs } from "./jobs.ts";
import type { JobStore } from "./store.ts";

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

test("jobs that wait for a cluster keep no work of this process and no other kind of job waiting", async (t) => {
  const [held, release] = gate();
  const begun: string[] = [];
  const wait = async ({ kind, spec: { column } }: Job) => {
    begun.push(`${kind} ${column}`);
    await held;
    return {};
  };
  const store = storeIn(await temporaryDirectory(t));
  const facts = { state: "queued", table: ["t"], createdAt: 1, attempts: 1 } as const;
  const dead = (digit: number, kind: string, engine: string) =>
    store.put({
      ...{ ...facts, kind, begun: 1, startedAt: 1 },
      ...{ id: `00000000-0000-4000-8000-00000000000${digit}`, spec: { column: `dead ${engine}`, engine } },
    });
  await dead(1, "compaction", "ray");
  await dead(2, "build", "embedded");
  const jobs = jobsOn(t, store, { compaction: wait, build: wait });
  const submit = (kind: string, column: string, engine: string) =>
    jobs.submit({ ...request(kind), spec: { column, engine } });
  await submit("compaction", "1", "ray");
  const next = await submit("compaction", "2", "ray");
  await submit("build", "1", "ray");
  await submit("build", "1 here", "embedded");
  const first = ["build 1", "build 1 here", "build dead embedded", "compaction 1", "compaction dead ray"];
  while (begun.length < first.length) await sleep(5);
  await sleep(50);
  assert.deepEqual([...begun].sort(), first);
  release();
  assert.equal((await ended(jobs, next.id)).state, "succeeded");
});
