import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { createTokenBuckets } from "./token-buckets.ts";

function bucketsAt(rate: { perSecond: number; burst: number }, maxKeys?: number) {
  const clock = { now: 0 };
  return { clock, buckets: createTokenBuckets(rate, maxKeys, () => clock.now) };
}

describe("token buckets", () => {
  it("let a burst through, and then calls at their rate", () => {
    const { clock, buckets } = bucketsAt({ perSecond: 10, burst: 3 });
    assert.deepEqual(
      [1, 2, 3, 4].map(() => buckets.take("a")),
      [0, 0, 0, 100],
    );
    clock.now = 50;
    assert.equal(buckets.take("a"), 50);
    clock.now = 100;
    assert.equal(buckets.take("a"), 0);
    let passed = 0;
    for (clock.now = 101; clock.now <= 10_100; clock.now++) if (buckets.take("a") === 0) passed += 1;
    assert.ok(Math.abs(passed - 100) <= 1, String(passed));
  });

  it("do not fill beyond the burst, however long the pause", () => {
    const { clock, buckets } = bucketsAt({ perSecond: 10, burst: 2 });
    clock.now = 3_600_000;
    assert.deepEqual(
      [1, 2, 3].map(() => buckets.take("a")),
      [0, 0, 100],
    );
  });

  it("count each key for itself", () => {
    const { buckets } = bucketsAt({ perSecond: 1, burst: 1 });
    assert.deepEqual(
      ["a", "b", "a"].map((key) => buckets.take(key)),
      [0, 0, 1_000],
    );
  });

  it("remember a bounded number of keys, and forget the one that has been silent for longest", () => {
    const { buckets } = bucketsAt({ perSecond: 1, burst: 1 }, 2);
    for (const key of ["a", "b"]) buckets.take(key);
    assert.equal(buckets.take("a"), 1_000);
    buckets.take("c");
    assert.deepEqual(
      ["a", "b"].map((key) => buckets.take(key)),
      [1_000, 0],
    );
  });
});
