import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { clock, ended, endless, gate, jobsOn, request, storeIn } from "../../../../test/fixtures/dir/jobs.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { type Span, setTracing } from "../../../runtime/tracing.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { createJobs } from "./jobs.ts";
import { findJobFiles, type JobStore } from "./store.ts";

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

test("the work of a job is a span in the trace of the call that asked for it, also in another process", async (t) => {
  const spans: unknown[] = [];
  const parent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  let current: Span | undefined;
  const span = (traceParent: string): Span => ({
    traceParent,
    set() {},
    end: (error) => void spans.push(error === undefined ? "done" : "failed"),
    run: (work) => work(),
  });
  setTracing({
    start({ name, attributes, caller }) {
      spans.push([
        name,
        attributes?.["lance.job_type"],
        attributes?.["lance.object"],
        caller?.["traceparent"],
      ]);
      return span("own");
    },
    get current() {
      return current;
    },
  });
  t.onTestFinished(() => setTracing(undefined));
  const store = storeIn(await temporaryDirectory(t));
  const work = {
    double: async () => ({}),
    refused: async () => {
      throw new LanceError("TableNotFound", "it is gone");
    },
  };
  const other = jobsOn(t, store, {});
  current = span(parent);
  const { id } = await other.leave(request("double"));
  current = undefined;
  const jobs = jobsOn(t, store, work);
  await ended(jobs, id);
  await ended(jobs, (await jobs.submit(request("refused"))).id);
  assert.deepEqual(spans, [
    ...[["job", "double", "a$b", parent], "done"],
    ...[["job", "refused", "a$b", ""], "failed"],
  ]);
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
