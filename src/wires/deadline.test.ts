import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test, vi } from "vitest";
import { startDeadline } from "./deadline.ts";

describe("deadlines", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("end calls exactly when their time is over, whether it is short or long", () => {
    const times = [10, 200, 201, 250, 60_000];
    const ended: number[] = [];
    for (const ms of times)
      startDeadline(ms, (error) => {
        assert.equal(error.kind, "DeadlineExceeded");
        ended.push(ms);
      });
    let passed = 0;
    for (const [at, ms] of times.entries()) {
      vi.advanceTimersByTime(ms - 1 - passed);
      assert.deepEqual(ended, times.slice(0, at));
      vi.advanceTimersByTime(1);
      assert.deepEqual(ended, times.slice(0, at + 1));
      passed = ms;
    }
    assert.equal(vi.getTimerCount(), 0);
  });

  test("do not end the calls that end before, and leave those of others alone", () => {
    const ended: number[] = [];
    const deadlines = Array.from({ length: 20 }, (_, n) => startDeadline(5_000, () => ended.push(n)));
    vi.advanceTimersByTime(4_000);
    for (const [n, deadline] of deadlines.entries()) if (n % 3 !== 0) deadline?.clear();
    vi.advanceTimersByTime(900);
    deadlines[3]?.clear();
    vi.advanceTimersByTime(60_000);
    assert.deepEqual(
      ended.toSorted((a, b) => a - b),
      [0, 6, 9, 12, 15, 18],
    );
    assert.equal(vi.getTimerCount(), 0);
  });
});
