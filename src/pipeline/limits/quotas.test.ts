import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { allocateCells, clearWorker, openCells } from "../../runtime/threads/keyed-cells.ts";
import { createQuota, QUOTA_SHAPE } from "./quotas.ts";

/** Quotas of two workers of a process. */
function openBoth(max: number) {
  const memory = allocateCells(QUOTA_SHAPE, 2);
  const [one, two] = [0, 1].map((worker) =>
    createQuota(max, openCells(QUOTA_SHAPE, { worker, workers: 2 }, memory)),
  );
  assert.ok(one && two);
  return { one, two, end: (worker: number) => clearWorker(QUOTA_SHAPE, { worker, workers: 2 }, memory) };
}

describe("a quota", () => {
  it("bounds what a caller holds in all workers together", () => {
    const { one, two } = openBoth(10);
    assert.deepEqual([one.take("ann", 6), two.take("ann", 5), two.take("ann", 4)], [true, false, true]);
    assert.equal(one.take("bob", 10), true);
    one.release("ann", 6);
    assert.deepEqual([two.take("ann", 6), two.take("ann", 1)], [true, false]);
  });

  it("takes back what a worker has handed out that has ended", () => {
    const { one, two, end } = openBoth(1);
    assert.deepEqual([one.take("ann", 1), two.take("ann", 1)], [true, false]);
    end(0);
    assert.equal(two.take("ann", 1), true);
  });

  it("remembers every caller that holds something", () => {
    const cells = openCells({ ...QUOTA_SHAPE, keys: 16 });
    const quota = createQuota(1, cells);
    const callers = Array.from({ length: 20 }, (_, index) => `caller ${index}`);
    assert.equal(callers.filter((caller) => quota.take(caller, 1)).length, 16);
    assert.equal(callers.filter((caller) => quota.take(caller, 1)).length, 0);
    quota.release("caller 0", 1);
    assert.equal(quota.take("caller 19", 1), true);
  });
});
