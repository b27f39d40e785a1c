import assert from "node:assert/strict";
import { expect, test } from "vitest";
import { LanceError } from "../namespace/errors.ts";
import { type DescribedJob, jobEnd } from "./namespace-writes.ts";

const never = new AbortController().signal;
const ended = (...states: readonly DescribedJob[]) => {
  const left = [...states];
  return jobEnd("j", async () => left.shift() as DescribedJob, never);
};
const open = { jobState: "IN_PROGRESS" };

test("returns the number of rows when the job has ended", async () => {
  assert.equal(await ended(open, open, { jobState: "DONE", result: { rows_written: 5 } }), 5n);
  assert.equal(await ended({ jobState: "DONE" }), 0n);
});

test.each([
  [{ jobState: "FAILED", failure: { message: "no column", retryable: false } }, "InvalidTableState"],
  [{ jobState: "FAILED", failure: { message: "no column", retryable: true } }, "InvalidTableState"],
  [{ jobState: "CANCELLED" }, "Cancelled"],
])("fails for the job %j", async (job, kind) => {
  const failure = await ended(open, job).catch((thrown) => thrown);
  assert.equal(failure.kind, kind);
  assert.match(failure.message, /^the refresh by job j (?:has failed: no column|was cancelled)/);
});

test("ends with the reason of its signal", async () => {
  const reasons = [new LanceError("DeadlineExceeded", "too late"), new Error("the client left")];
  for (const [i, kind] of ["DeadlineExceeded", "Cancelled"].entries()) {
    const { signal, abort } = ((controller) => ({
      signal: controller.signal,
      abort: () => controller.abort(reasons[i]),
    }))(new AbortController());
    setTimeout(abort, 5);
    const waiting = jobEnd("j", async () => open, signal);
    await expect(waiting).rejects.toMatchObject({ kind });
  }
});

test("looks again while it is refused for now, and says when nothing tells the end", async () => {
  const answers: (DescribedJob | LanceError)[] = [
    new LanceError("Throttling", "too many requests"),
    new LanceError("ServiceUnavailable", "the storage does not answer"),
    { jobState: "DONE", result: { rows_written: 1.5 } },
  ];
  const describe = async () => {
    const next = answers.shift();
    if (next instanceof LanceError) throw next;
    return next as DescribedJob;
  };
  assert.equal(await jobEnd("j", describe, never), 0n);
  answers.push(new LanceError("PermissionDenied", "not allowed"));
  const unknown = { kind: "OutcomeUnknown", message: /job j refreshes the view.*: not allowed$/ };
  await assert.rejects(jobEnd("j", describe, never), unknown);
  answers.push({ jobState: "QUEUED" });
  await assert.rejects(jobEnd("j", describe, never), { kind: "OutcomeUnknown" });
});
