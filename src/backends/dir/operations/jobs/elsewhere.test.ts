import assert from "node:assert/strict";
import { test } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Job } from "../../jobs/job.ts";
import type { Jobs } from "../../jobs/jobs.ts";
import { doElsewhere, type ElsewhereOptions } from "./elsewhere.ts";

const QUEUED: Job = {
  ...{ id: "job", kind: "k", table: ["t"], spec: {}, state: "queued", createdAt: 0, attempts: 1 },
};
const LEASED: Job = { ...QUEUED, lease: { owner: "gateway", until: 1 } };
const RUNNING: Job = { ...LEASED, state: "running" };
const DONE: Job = { ...QUEUED, state: "succeeded", finishedAt: 1, result: { rows: 1 } };
const CANCELLED: Job = { ...QUEUED, state: "cancelled", finishedAt: 1 };
const failing = new LanceError("ServiceUnavailable", "the storage fails");

/** Follows a job whose record has the given states or errors, look by look, and counts its cancellations. */
async function follow(looks: readonly (Job | LanceError)[], options: Partial<ElsewhereOptions> = {}) {
  const left = [...looks];
  let cancellations = 0;
  const jobs = {
    leave: async () => QUEUED,
    async get() {
      const look = left.shift();
      if (look instanceof LanceError) throw look;
      return look;
    },
    async cancel() {
      cancellations += 1;
      return true;
    },
  } as unknown as Jobs;
  const wait = { work: "the import", needs: "--job-engine ray", waitMs: 60_000, lookMs: 1 };
  const ended = doElsewhere({ jobs }, { kind: "k", table: ["t"], spec: {} }, { ...wait, ...options });
  const result = await ended.catch((error: unknown) => error);
  return { result, cancellations, unread: left.length };
}

test("a job is followed while looks at it fail for a time, or its progress cannot be read", async () => {
  const onLook = () => Promise.reject(failing);
  const { result, cancellations } = await follow([RUNNING, failing, failing, RUNNING, DONE], { onLook });
  assert.deepEqual([result, cancellations], [{ rows: 1 }, 0]);
});

test("a job that can be followed no longer is cancelled, and its outcome is unknown", async () => {
  for (const error of [failing, new LanceError("DataLoss", "no job")]) {
    const { result, cancellations } = await follow([RUNNING, error, error, DONE], { patienceMs: 0 });
    assert.ok(failsWith("OutcomeUnknown")(result));
    assert.equal(cancellations, 1);
  }
});

test("a queued job without a lease is given up after the wait, and one with a lease is not", async () => {
  const alone = await follow([QUEUED, QUEUED], { waitMs: 0 });
  assert.ok(failsWith("ServiceUnavailable")(alone.result));
  assert.equal(alone.cancellations, 1);
  assert.deepEqual((await follow([LEASED, RUNNING, DONE], { waitMs: 0 })).result, { rows: 1 });
});

test("a job that a gateway has begun before the cancellation is followed to its end", async () => {
  const late = await follow([QUEUED, RUNNING, DONE], { waitMs: 0 });
  assert.deepEqual([late.result, late.cancellations], [{ rows: 1 }, 1]);
  const none = await follow([QUEUED, RUNNING, CANCELLED], { waitMs: 0 });
  assert.ok(failsWith("ServiceUnavailable")(none.result));
  const aborted = await follow([QUEUED, LEASED, RUNNING, CANCELLED], { signal: AbortSignal.abort() });
  assert.ok(failsWith("Cancelled")(aborted.result));
  assert.deepEqual([aborted.cancellations, aborted.unread], [1, 0]);
});

test("a job that was cancelled after its work was done has a result", async () => {
  const findResult = async () => ({ rows: 2 });
  const { result } = await follow([RUNNING, CANCELLED], { signal: AbortSignal.abort(), findResult });
  assert.deepEqual(result, { rows: 2 });
});
