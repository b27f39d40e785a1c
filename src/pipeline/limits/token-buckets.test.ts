import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { openCells } from "../../runtime/threads/keyed-cells.ts";
import { BUCKETS_SHAPE, createTokenBuckets } from "./token-buckets.ts";

function bucketsAt(rate: { perSecond: number; burst: number }, keys?: number) {
  const clock = { now: 0 };
  const cells = openCells({ ...BUCKETS_SHAPE, ...(keys !== undefined && { keys }) });
  return { clock, buckets: createTokenBuckets(rate, cells, () => clock.now) };
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

  it("are bounded in number, and the one is forgotten that is next to be full", () => {
    const { buckets } = bucketsAt({ perSecond: 1, burst: 3 }, 16);
    const others = Array.from({ length: 14 }, (_, index) => `other ${index}`);
    for (const key of ["busy", "busy", "busy", "idle", ...others, ...others]) buckets.take(key);
    assert.equal(buckets.take("new"), 0);
    assert.equal(buckets.take("busy"), 1_000);
    for (const expected of [0, 0, 0]) assert.equal(buckets.take("idle"), expected);
  });
});
