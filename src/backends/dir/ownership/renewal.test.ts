import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import { keepRenewing } from "./renewal.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
afterEach(() => void vi.useRealTimers());

const TIMES = { renewMs: 10, leaseMs: 35 };

test("an owner whose signs are acknowledged stays fresh, and one without signs does not", async () => {
  const renewal = keepRenewing(async () => {}, TIMES, performance.now());
  await vi.advanceTimersByTimeAsync(1_000);
  assert.equal(renewal.isFresh(), true);
  assert.equal(await renewal.stop(), true);
  await vi.advanceTimersByTimeAsync(TIMES.leaseMs);
  assert.equal(renewal.isFresh(), false);
});

test("a sign that fails is made up for by the next one", async () => {
  let signs = 0;
  const failing = async () => {
    if (++signs % 3 !== 0) throw new Error("the storage fails");
  };
  const renewal = keepRenewing(failing, TIMES, performance.now());
  await vi.advanceTimersByTimeAsync(1_000);
  assert.equal(renewal.isFresh(), true);
  await renewal.stop();
});

test("a late owner never gets back what it lost, and gives no more signs", async () => {
  let isBroken = true;
  let signs = 0;
  const sign = async () => {
    signs++;
    if (isBroken) throw new Error("the storage fails");
  };
  const renewal = keepRenewing(sign, TIMES, performance.now());
  await vi.advanceTimersByTimeAsync(TIMES.leaseMs + 1);
  isBroken = false;
  const before = signs;
  await vi.advanceTimersByTimeAsync(1_000);
  assert.equal(renewal.isFresh(), false);
  assert.equal(signs, before);
  await renewal.stop();
});

test("a freshness counts from the begin of the request that was acknowledged", async () => {
  const answers: (() => void)[] = [];
  const sign = () => new Promise<void>((resolve) => answers.push(resolve));
  const renewal = keepRenewing(sign, TIMES, performance.now());
  await vi.advanceTimersByTimeAsync(30);
  assert.equal(answers.length, 1, "signs do not overlap");
  answers[0]?.();
  await vi.advanceTimersByTimeAsync(0);
  const stopped = renewal.stop();
  await vi.advanceTimersByTimeAsync(16);
  assert.equal(renewal.isFresh(), false);
  await stopped;
});

test("the end waits for the sign that is on its way, and says whether there was one", async () => {
  let answer = () => {};
  const sign = () =>
    new Promise<void>((resolve) => {
      answer = resolve;
    });
  const renewal = keepRenewing(sign, TIMES, performance.now());
  await vi.advanceTimersByTimeAsync(TIMES.renewMs);
  let ended: boolean | undefined;
  void renewal.stop().then((hasSigned) => {
    ended = hasSigned;
  });
  await vi.advanceTimersByTimeAsync(5);
  assert.equal(ended, undefined);
  answer();
  await vi.advanceTimersByTimeAsync(0);
  assert.equal(ended, true);
  assert.equal(await keepRenewing(sign, TIMES, performance.now()).stop(), false);
});
