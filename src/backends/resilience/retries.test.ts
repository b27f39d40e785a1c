import assert from "node:assert/strict";
import fc from "fast-check";
import { afterEach, beforeEach, describe, test, vi } from "vitest";
import { LanceError } from "../../namespace/errors.ts";
import { Budget, Delays, retryAfterMs } from "./retries.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2030, 0) }));
afterEach(() => vi.useRealTimers());

describe("the budget of repetitions", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("calls"), count: fc.integer({ min: 1, max: 300 }) }),
    fc.record({ kind: fc.constant("takes"), count: fc.integer({ min: 1, max: 300 }) }),
    fc.record({ kind: fc.constant("time"), count: fc.integer({ min: -5_000, max: 60_000 }) }),
  );

  test("gives never more than its share, what time brings, and what it began with", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), fc.array(step), (share, steps) => {
        const budget = new Budget(share);
        let [calls, taken, ms] = [0, 0, 0];
        for (const { kind, count } of steps) {
          if (kind === "time") {
            vi.setSystemTime(Math.max(0, Date.now() + count));
            // A clock that is set back restores the time since then.
            ms += Math.max(0, count);
            continue;
          }
          for (let index = 0; index < count; index += 1) {
            if (kind === "calls") {
              budget.earn();
              calls += 1;
            } else if (budget.take()) taken += 1;
          }
          assert.ok(taken <= 10 + calls * share + (ms / 1000) * 3 + 1e-6, `${taken} of ${calls}`);
        }
      }),
    );
  });

  test("saves up no more than a hundred", () => {
    const budget = new Budget(1);
    for (let call = 0; call < 1_000; call += 1) budget.earn();
    vi.setSystemTime(Date.now() + 3_600_000);
    let taken = 0;
    while (budget.take()) taken += 1;
    assert.equal(taken, 100);
  });
});

describe("the waits before repetitions", () => {
  const failure = (retryAfter?: string) =>
    new LanceError("ServiceUnavailable", "s", {
      headers: retryAfter === undefined ? {} : { "retry-after": retryAfter },
    });

  test("are between nothing and a bound that doubles", () => {
    for (let round = 0; round < 200; round += 1) {
      const delays = new Delays(50, 120);
      for (const bound of [50, 100, 120, 120]) {
        const delay = delays.next(failure()) as number;
        assert.ok(delay >= 0 && delay < bound, `${delay} of ${bound}`);
      }
    }
  });

  test("are those that the upstream asks for, up to a bound", () => {
    assert.equal(new Delays(0, 2_000).next(failure("2")), 2_000);
    assert.equal(new Delays(0, 2_000).next(failure("3")), undefined);
  });

  const texts: readonly [text: string | undefined, ms: number | undefined][] = [
    [undefined, undefined],
    ["0", 0],
    [" 7 ", 7_000],
    ["1.5", 1_500],
    ["Tue, 01 Jan 2030 00:00:05 GMT", 5_000],
    ["Tue, 01 Jan 2019 00:00:05 GMT", 0],
    ["soon", undefined],
    ["", undefined],
  ];
  for (const [text, ms] of texts) {
    test(`retry-after: ${text}`, () => assert.equal(retryAfterMs(text), ms));
  }
});
