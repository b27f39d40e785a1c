import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it, vi } from "vitest";
import { allocateCells, openCells } from "../runtime/threads/keyed-cells.ts";
import { createFailureDelay, FAILURES_SHAPE } from "./authenticator.ts";

describe("the delay after failures", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["hrtime"] }));
  afterEach(() => void vi.useRealTimers());

  it("doubles up to its bound, for each address by itself", () => {
    const delay = createFailureDelay({ firstMs: 10, longestMs: 50 });
    const delays = Array.from({ length: 5 }, () => delay.failed("192.0.2.1"));
    assert.deepEqual(delays, [10, 20, 40, 50, 50]);
    assert.equal(delay.failed("192.0.2.2"), 10);
  });

  it("forgets an address that has been quiet", () => {
    const delay = createFailureDelay({ firstMs: 10, memoryMs: 1_000 });
    assert.deepEqual([delay.failed("192.0.2.1"), delay.failed("192.0.2.1")], [10, 20]);
    vi.advanceTimersByTime(1_000);
    assert.equal(delay.failed("192.0.2.1"), 10);
  });

  it("remembers a bounded number of addresses, the latest ones", () => {
    const delay = createFailureDelay({ firstMs: 10, cells: openCells({ ...FAILURES_SHAPE, keys: 16 }) });
    const fail = (address: string) => {
      vi.advanceTimersByTime(1);
      return delay.failed(address);
    };
    const others = Array.from({ length: 14 }, (_, index) => `other ${index}`);
    for (const address of ["a", "b", "a", ...others, "c"]) fail(address);
    assert.equal(fail("a"), 40);
    assert.equal(fail("b"), 10);
  });

  it("counts the failures that all workers have seen", () => {
    const memory = allocateCells(FAILURES_SHAPE, 2);
    const delays = [0, 1].map((worker) =>
      createFailureDelay({ firstMs: 10, cells: openCells(FAILURES_SHAPE, { worker, workers: 2 }, memory) }),
    );
    assert.deepEqual(
      [0, 1, 0].map((worker) => delays[worker]?.failed("192.0.2.1")),
      [10, 20, 40],
    );
  });
});
