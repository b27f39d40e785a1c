import assert from "node:assert/strict";
import { test } from "vitest";
import { failsWith } from "../../../../test/fixtures/dir/directory-backend.ts";
import type { Call } from "../../../namespace/call/call.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { timeLimit, untilAborted } from "./wait.ts";

test("work is waited for, and its failure is passed on", async () => {
  const { signal } = new AbortController();
  assert.equal(await untilAborted(Promise.resolve(1), signal), 1);
  assert.equal(await untilAborted(Promise.resolve(undefined), signal), undefined);
  await assert.rejects(untilAborted(Promise.reject(new Error("broken")), signal), /broken/);
});

test("an abort ends the wait at once, with its reason, and the late result is disposed of", async () => {
  const reasons = [
    ["DeadlineExceeded", new LanceError("DeadlineExceeded", "too late")],
    ["Cancelled", undefined],
  ] as const;
  for (const [name, reason] of reasons) {
    const controller = new AbortController();
    const { promise, resolve } = Promise.withResolvers<string>();
    const late: string[] = [];
    const waiting = untilAborted(promise, controller.signal, (value) => void late.push(value));
    controller.abort(reason);
    await assert.rejects(waiting, failsWith(name));
    resolve("late");
    await new Promise((done) => setImmediate(done));
    assert.deepEqual(late, ["late"]);
    await assert.rejects(untilAborted(Promise.resolve(1), controller.signal), failsWith(name));
  }
});

test("handles the failure of work after the abort", async () => {
  const controller = new AbortController();
  const { promise, reject } = Promise.withResolvers<string>();
  const waiting = untilAborted(promise, controller.signal);
  controller.abort();
  await assert.rejects(waiting, failsWith("Cancelled"));
  reject(new Error("broken"));
  await new Promise((done) => setImmediate(done));
});

test("the time limit is the shorter one of the call's and the operation's own", () => {
  const call = (deadline: number | undefined) => ({ deadline }) as Call;
  assert.equal(timeLimit(call(undefined)), undefined);
  assert.equal(timeLimit(call(undefined), 0.2), 1);
  assert.equal(timeLimit(call(undefined), 2 ** 40), 2 ** 32 - 1);
  assert.equal(timeLimit(call(Date.now() - 5)), 1);
  assert.equal(timeLimit(call(Date.now() + 60_000), 50), 50);
  const left = timeLimit(call(Date.now() + 60_000), 120_000) as number;
  assert.ok(left > 59_000 && left <= 60_000);
});
