import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it, vi } from "vitest";
import { createFailureDelay } from "./failure-delay.ts";

describe("the delay after failures", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
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
    const delay = createFailureDelay({ firstMs: 10, maxAddresses: 2 });
    for (const address of ["a", "b", "a", "c"]) delay.failed(address);
    assert.equal(delay.failed("a"), 40);
    assert.equal(delay.failed("b"), 10);
  });
});
