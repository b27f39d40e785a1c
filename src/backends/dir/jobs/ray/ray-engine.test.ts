import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { expect, type TestContext, test } from "vitest";
import { silent, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import {
  type RayStandIn,
  type StandInJob,
  startRayStandIn,
} from "../../../../../test/fixtures/ray/ray-stand-in.ts";
import { until } from "../../../../../test/support/until.ts";
import { type ErrorName, isLanceError, LanceError } from "../../../../namespace/errors.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { runOn } from "../job-engine.ts";
import { createDriverRecords } from "./driver-records.ts";
import { createRayClient } from "./ray-client.ts";
import { createRayEngine, submissionId } from "./ray-engine.ts";

const JOB = "00000000-0000-4000-8000-000000000001";
const KEY = "a key that only the driver has";
const KEY_LINE = `lance-gateway-driver-key sha256:${createHash("sha256").update(KEY).digest("hex")}`;
const CANCELLED = new LanceError("Cancelled", "the job was cancelled");

const fails = (name: ErrorName, message: RegExp) => (error: unknown) =>
  isLanceError(error, name) && message.test(error.message);

type Fixture = Awaited<ReturnType<typeof openEngine>>;

/** Opens an engine over a simulated head of Ray, whose drivers do what `drive` says. */
async function openEngine(
  t: TestContext,
  drive: (job: StandInJob, fixture: Pick<Fixture, "records">) => unknown = () => {},
) {
  const records = createDriverRecords(createLocalStore(), `${(await temporaryDirectory(t)).slice(1)}/.jobs`);
  const ray: RayStandIn = await startRayStandIn(t, (job) => drive(job, { records }));
  const open = (addresses: readonly string[] = [ray.url], lostMs = 60_000) => {
    const client = createRayClient({ addresses, timeoutMs: 500 });
    t.onTestFinished(client.close);
    const options = { client, records, gatewayUrl: "http://127.0.0.1:1", pollMs: [5, 20] as const };
    return createRayEngine({ ...options, lostMs, log: silent });
  };
  const controller = new AbortController();
  const run = (engine = open()) =>
    runOn(engine, { jobId: JOB, inProcess: () => Promise.reject(new Error("not here")) }, controller.signal);
  return { ray, records, open, run, cancel: (reason: unknown) => controller.abort(reason) };
}

/** A driver that shows its key and has made something. */
async function makesSomething(job: StandInJob, { records }: Pick<Fixture, "records">) {
  job.logs = `Runtime env is setting up.\n${KEY_LINE}\n`;
  const run = Number(job.id.at(-1));
  await until(() => records.hasKey(JOB, run));
  await records.noteProgress(JOB, { step: "building", done: 1, total: 2 });
  await records.noteReport(JOB, run, { result: { made: run } });
  job.status = "SUCCEEDED";
}

test("work that a driver has done has its result, and the list of jobs has no key", async (t) => {
  const { ray, records, run } = await openEngine(t, makesSomething);
  assert.deepEqual(await run(), { made: 1 });
  assert.deepEqual([...ray.jobs.keys()], [submissionId(JOB, 1)]);
  assert.equal(await records.isKey(JOB, 1, KEY), true);
  assert.equal(await records.isKey(JOB, 1, "another"), false);
  assert.equal(await records.isKey(JOB, 2, KEY), false);
  const [job] = ray.jobs.values();
  assert.equal(
    job?.entrypoint,
    `python -m lance_gateway_ray --gateway 'http://127.0.0.1:1' --job ${JOB} --run 1`,
  );
  assert.deepEqual(job?.metadata, { lance_gateway_job: JOB });
});

test("only the first key in a log counts", async (t) => {
  const { records, run } = await openEngine(t, async (job, fixture) => {
    await makesSomething(job, fixture);
    job.logs += `${KEY_LINE.replace(/[0-9a-f]{8}$/, "00000000")}\n`;
  });
  await run();
  await records.noteKey(JOB, 1, "00".repeat(32));
  assert.equal(await records.isKey(JOB, 1, KEY), true);
});

test("a driver that dies is followed by another, whose predecessor counts no longer", async (t) => {
  const { ray, records, run } = await openEngine(t, (job, fixture) => {
    if (!job.id.endsWith("-1")) return makesSomething(job, fixture);
    return Object.assign(job, { status: "FAILED", message: "driver was killed" });
  });
  assert.deepEqual(await run(), { made: 2 });
  assert.deepEqual([...ray.jobs.keys()], [submissionId(JOB, 1), submissionId(JOB, 2)]);
  assert.deepEqual([await records.hasEnded(JOB, 1), await records.hasEnded(JOB, 2)], [true, false]);
});

test("work fails after three dead drivers, for a reason that may pass", async (t) => {
  const { ray, run } = await openEngine(t, (job) => {
    Object.assign(job, { status: "FAILED", message: "Traceback\nMemoryError\n" });
  });
  await assert.rejects(run(), fails("ServiceUnavailable", /died 3 times: FAILED: MemoryError$/));
  assert.equal(ray.jobs.size, 3);
});

test("a failure that the driver reports is not repeated", async (t) => {
  const { ray, run } = await openEngine(t, async (job, { records }) => {
    const failure = { message: "ValueError: no such column", retryable: false };
    await records.noteReport(JOB, 1, { failure });
    job.status = "FAILED";
  });
  await assert.rejects(run(), fails("InvalidInput", /^on Ray: ValueError: no such column$/));
  assert.equal(ray.jobs.size, 1);
});

test("another process finds the run of a former one by its id, and the report of a run that has ended", async (t) => {
  const { ray, records, open, run, cancel } = await openEngine(t);
  const former = run();
  await until(() => ray.jobs.size === 1);
  cancel(new LanceError("ServiceUnavailable", "the server is shutting down"));
  await assert.rejects(former, /shutting down/);
  assert.equal(ray.jobs.get(submissionId(JOB, 1))?.status, "RUNNING");
  const next = runOn(
    open(),
    { jobId: JOB, inProcess: () => Promise.reject(new Error("not here")) },
    new AbortController().signal,
  );
  await makesSomething(ray.jobs.get(submissionId(JOB, 1)) as StandInJob, { records });
  assert.deepEqual(await next, { made: 1 });
  const seen = ray.requests.length;
  const work = { jobId: JOB, inProcess: () => Promise.reject(new Error("not here")) };
  assert.deepEqual(await runOn(open(), work, new AbortController().signal), { made: 1 });
  assert.equal(ray.requests.length, seen);
});

test("a job that is done twice has the first result", async (t) => {
  const { records, run } = await openEngine(t, async (job, fixture) => {
    await makesSomething(job, fixture);
    await fixture.records.noteReport(JOB, 1, { result: { made: "again" } });
  });
  assert.deepEqual(await run(), { made: 1 });
  assert.deepEqual(await records.reportOf(JOB, 1), { result: { made: 1 } });
});

test("a cancelled job is stopped on Ray, and its driver counts no longer", async (t) => {
  const { ray, records, run, cancel } = await openEngine(t);
  const running = run();
  await until(() => ray.jobs.size === 1);
  cancel(CANCELLED);
  await assert.rejects(running, CANCELLED);
  await until(() => ray.jobs.get(submissionId(JOB, 1))?.status === "STOPPED");
  assert.equal(await records.hasEnded(JOB, 1), true);
});

test("a head that answers 500 or nothing for a while loses nothing", async (t) => {
  const { ray, records, run } = await openEngine(t);
  const running = run();
  await until(() => ray.jobs.size === 1);
  for (const fault of [500, "nothing"] as const) {
    ray.answerWith(fault);
    const seen = ray.requests.length;
    await until(() => ray.requests.length > seen);
  }
  ray.answerWith(undefined);
  await makesSomething(ray.jobs.get(submissionId(JOB, 1)) as StandInJob, { records });
  assert.deepEqual(await running, { made: 1 });
}, 20_000);

test("a dead head ends the work after a while, and a report that arrives without it counts", async (t) => {
  const dead = await openEngine(t);
  const failing = dead.run(dead.open([dead.ray.url], 50));
  await until(() => dead.ray.jobs.size === 1);
  await dead.ray.die();
  await assert.rejects(failing, fails("ServiceUnavailable", /^Ray does not answer: /));
  assert.equal(await dead.records.hasEnded(JOB, 1), true);

  const alive = await openEngine(t);
  const running = alive.run();
  await until(() => alive.ray.jobs.size === 1);
  await alive.ray.die();
  await alive.records.noteReport(JOB, 1, { result: { made: 1 } });
  assert.deepEqual(await running, { made: 1 });
});

test("a head that was restarted runs the work once more", async (t) => {
  let starts = 0;
  const { ray, run } = await openEngine(t, (job, fixture) => {
    starts += 1;
    if (starts === 1) ray.restart();
    else return makesSomething(job, fixture);
    return undefined;
  });
  assert.deepEqual(await run(), { made: 2 });
});

test("a job waits for a head that does not answer when it is submitted", async (t) => {
  const { ray, run } = await openEngine(t, makesSomething);
  ray.answerWith(500);
  const running = run();
  await until(() => ray.requests.length > 2);
  ray.answerWith(undefined);
  assert.deepEqual(await running, { made: 1 });
}, 20_000);

test("a job that no head takes fails after a while, and is cancelled before", async (t) => {
  const { ray, open, run, cancel } = await openEngine(t);
  ray.answerWith(500);
  await assert.rejects(run(open([ray.url], 50)), fails("ServiceUnavailable", /^Ray does not answer: /));
  const cancelled = run();
  await until(() => ray.requests.length > 2);
  cancel(CANCELLED);
  await assert.rejects(cancelled, CANCELLED);
  assert.equal(ray.jobs.size, 0);
}, 20_000);

test("a restarted head that takes no jobs at first costs a single run", async (t) => {
  let starts = 0;
  const { ray, run } = await openEngine(t, (job, fixture) => {
    starts += 1;
    if (starts > 1) return makesSomething(job, fixture);
    ray.restart();
    ray.answerWith(500, "POST");
    return undefined;
  });
  const running = run();
  const refused = () => ray.requests.filter((request) => request.startsWith("POST")).length - 1;
  await until(() => refused() > 3);
  ray.answerWith(undefined);
  assert.deepEqual(await running, { made: 2 });
}, 20_000);

test("another head answers in place of a dead one", async (t) => {
  const { ray, open, run } = await openEngine(t, makesSomething);
  assert.deepEqual(await run(open(["http://127.0.0.1:1", `${ray.url}/`])), { made: 1 });
});

test("a token that the cluster refuses is named", async (t) => {
  const ray = await startRayStandIn(t, () => {}, "right");
  const wrong = createRayClient({ addresses: [ray.url], token: "wrong" });
  const right = createRayClient({ addresses: [ray.url], token: "right" });
  t.onTestFinished(() => Promise.all([wrong.close(), right.close()]).then(() => {}));
  await assert.rejects(wrong.find("x"), { message: /refuses the token of --ray-token-file/ });
  assert.equal(await right.find("x"), undefined);
  expect(ray.lastHeaders()["authorization"]).toBe("Bearer right");
});
