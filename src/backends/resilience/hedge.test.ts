import assert from "node:assert/strict";
import { pino } from "pino";
import { describe, test } from "vitest";
import { givenUp, kindOf, outcomeOf, useClock } from "../../../test/fixtures/upstreams/clock.ts";
import { fakeUpstream, faultError, type Outcome, pass } from "../../../test/fixtures/upstreams/resilience.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { UpstreamDecision } from "../../namespace/figures.ts";
import { createResilience } from "./create-resilience.ts";

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
