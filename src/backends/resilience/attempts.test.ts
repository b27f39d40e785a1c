import assert from "node:assert/strict";
import fc from "fast-check";
import { pino } from "pino";
import { afterEach, beforeEach, describe, test, vi } from "vitest";
import { givenUp, kindOf, outcomeOf, useClock } from "../../../test/fixtures/upstreams/clock.ts";
import { fakeUpstream, faultError, type Outcome, pass } from "../../../test/fixtures/upstreams/resilience.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { UpstreamDecision } from "../../namespace/figures.ts";
import { Budget, Delays, retryAfterMs } from "./attempts.ts";
import { createResilience } from "./create-resilience.ts";

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

useClock();

describe("hedged reads", () => {
  const options = { hedgeAfterMs: 100 };

  test("take the first answer, and end the other", async () => {
    const upstream = fakeUpstream(["hang", "answer"], options);
    const outcomes = [await outcomeOf(upstream.call()), await outcomeOf(upstream.call())];
    assert.deepEqual(
      outcomes.map(({ result }) => result),
      ["1", "1"],
    );
    assert.deepEqual(
      outcomes.flatMap(({ decisions }) => decisions),
      ["hedge", "hedge_won"],
    );
    assert.deepEqual(upstream.ended, [0]);
  });

  test("wait for the other when one fails, and fail when both have failed", async () => {
    const upstream = fakeUpstream(["hang"], { ...options, retries: 0 });
    let outcome: Outcome | undefined;
    const call = upstream.call().then((value) => {
      outcome = value;
      return value;
    });
    await pass(50);
    upstream.behaviours[0] = "unavailable";
    await pass(1_000);
    assert.deepEqual(upstream.counts, [2]);
    assert.equal(outcome, undefined, "the first attempt still runs");
    upstream.fail("reset");
    const { result, decisions } = await call;
    assert.ok(result instanceof LanceError);
    assert.deepEqual([result.kind, result.fault, decisions], ["ServiceUnavailable", "reset", ["hedge"]]);
  });

  test("both end when the caller gives up", async () => {
    const upstream = fakeUpstream(["hang"], { ...options, retries: 0 });
    const call = givenUp(upstream, 200, "parallel");
    assert.equal(kindOf(await outcomeOf(call)), "Cancelled");
    assert.deepEqual([upstream.counts, upstream.ended], [[2], [0, 0]]);
  });

  test("take an error for an answer, but not one after which another may be different", async () => {
    for (const [behaviour, ended] of [
      [new LanceError("TableNotFound", "t"), [1]],
      ["throttled", []],
      ["reset", []],
    ] as const) {
      const upstream = fakeUpstream([behaviour, "hang"], { ...options, retries: 0 });
      void upstream.call();
      await pass(150);
      assert.deepEqual(upstream.counts, [1, 1]);
      assert.deepEqual(upstream.ended, ended);
    }
  });

  test("count what the other reveals after the call has ended", async () => {
    const losers: ((error: unknown) => void)[] = [];
    const noted: UpstreamDecision[] = [];
    const decisions: UpstreamDecision[] = [];
    const places = [0, 1].map((target) => ({ target, name: String(target) }));
    const { run } = createResilience(places, {
      ...options,
      log: pino({ level: "silent" }),
      circuitFailures: 1,
      noteDecision: (decision) => noted.push(decision),
    });
    const call = {
      signal: new AbortController().signal,
      deadline: undefined,
      note: (decision: UpstreamDecision) => decisions.push(decision),
    };
    let attempts = 0;
    const answer = run(call, "parallel", () => {
      attempts += 1;
      if (attempts === 2) return Promise.resolve("answer");
      return new Promise<string>((_, reject) => losers.push(reject));
    });
    await pass(150);
    assert.equal(await answer, "answer");
    for (const lose of losers) lose(faultError("reset"));
    await pass(10);
    assert.deepEqual([decisions, noted], [["hedge", "hedge_won"], ["circuit_open"]]);
  });

  test("are only those that may run twice at once", async () => {
    const upstream = fakeUpstream(["hang"], options);
    void upstream.call("serial");
    void upstream.call("unsent");
    await pass(500);
    assert.deepEqual(upstream.counts, [2]);
  });

  test("stop when too many calls are repeated", async () => {
    const upstream = fakeUpstream(["hang"], { ...options, retryShare: 0 });
    const calls = Array.from({ length: 100 }, () => upstream.call());
    await pass(200);
    assert.equal(upstream.counts[0], 110);
    void calls;
  });
});
