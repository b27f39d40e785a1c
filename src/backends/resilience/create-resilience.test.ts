import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { kindOf, outcomeOf, outcomesOf, useClock } from "../../../test/fixtures/upstreams/clock.ts";
import { fakeUpstream, faultError, pass } from "../../../test/fixtures/upstreams/resilience.ts";
import { LanceError, type UpstreamFault } from "../../namespace/errors.ts";
import type { Repeatable } from "./resilience.ts";

useClock();

const table: readonly [fault: UpstreamFault, parallel: number, serial: number, unsent: number][] = [
  ["unreached", 3, 3, 3],
  ["reset", 3, 3, 1],
  ["unavailable", 3, 3, 1],
  ["throttled", 3, 3, 1],
  ["silent", 1, 1, 1],
  ["broken", 1, 1, 1],
];

describe("repetitions", () => {
  for (const [fault, ...counts] of table) {
    test(`of what was ${fault}`, async () => {
      for (const [index, repeatable] of (["parallel", "serial", "unsent"] as Repeatable[]).entries()) {
        const upstream = fakeUpstream([fault]);
        await outcomeOf(upstream.call(repeatable));
        assert.deepEqual(upstream.counts, [counts[index]], repeatable);
      }
    });
  }

  test("wait longer and longer, and as long as the upstream asks", async () => {
    const upstream = fakeUpstream([faultError("unavailable", { "retry-after": "2" })]);
    const call = upstream.call();
    await pass(1_990);
    assert.deepEqual(upstream.counts, [1]);
    upstream.behaviours[0] = "answer";
    await pass(100);
    assert.deepEqual((await call).decisions, ["retry"]);
  });

  test("do not wait longer than there is time, nor than is allowed", async () => {
    const patient = faultError("unavailable", { "retry-after": "3" });
    const start = Date.now();
    for (const [options, init] of [
      [{}, { deadline: start + 2_900 }],
      [{ totalMs: 2_900 }, {}],
      [{ maxBackoffMs: 2_900 }, {}],
    ] as const) {
      const upstream = fakeUpstream([patient], options);
      const { result, decisions } = await upstream.call("parallel", init);
      assert.equal(result, patient);
      assert.deepEqual(decisions, []);
    }
    assert.equal(Date.now(), start);
  });

  test("end with the call", async () => {
    const upstream = fakeUpstream([faultError("unavailable", { "retry-after": "3" })]);
    const controller = new AbortController();
    const call = upstream.call("parallel", { signal: controller.signal });
    await pass(100);
    const reason = new LanceError("Cancelled", "gone");
    controller.abort(reason);
    assert.equal((await call).result, reason);
    assert.deepEqual(upstream.counts, [1]);
  });

  test("go to another address at once, except when there are too many callers", async () => {
    const refused = fakeUpstream(["unavailable", "unavailable"]);
    refused.behaviours[0] = "answer";
    for (const outcome of await refused.calls(4)) assert.equal(outcome.result, "0");
    const throttled = fakeUpstream(["throttled", "throttled"]);
    const call = throttled.call();
    await pass(0);
    assert.deepEqual([...throttled.counts].sort(), [0, 1]);
    assert.equal(kindOf(await outcomeOf(call)), "ServiceUnavailable");
  });

  test("stop when too many calls are repeated", async () => {
    const upstream = fakeUpstream(["unavailable"], { circuitFailures: 0, retryShare: 0.2, backoffMs: 1 });
    const outcomes = await outcomesOf(upstream, 200);
    const repeated = Number(upstream.counts[0]) - 200;
    assert.ok(repeated >= 40 && repeated < 70, String(repeated));
    assert.ok(outcomes.some(({ decisions }) => decisions.includes("retry_refused_by_budget")));
  });
});

describe("addresses that fail more than others", () => {
  const options = { retries: 0, circuitFailures: 0, ejectMs: 10_000 };

  test("are left out for a time that grows, and called again", async () => {
    const upstream = fakeUpstream(["unavailable", "answer", "answer"], options);
    const decisions = (await upstream.calls(60)).flatMap((outcome) => outcome.decisions);
    assert.deepEqual(decisions, ["ejected"]);
    const [before] = upstream.counts as [number];
    assert.equal(before, 10);
    await pass(9_900, 100);
    await upstream.calls(6);
    assert.equal(upstream.counts[0], before);
    await pass(200, 100);
    await upstream.calls(60);
    assert.deepEqual(upstream.noted, ["readmitted"]);
    assert.equal(upstream.counts[0], before + 10);
    await pass(10_100, 100);
    await upstream.calls(6);
    assert.equal(upstream.counts[0], before + 10);
  });

  test("are never more than half of all", async () => {
    const upstream = fakeUpstream(["unavailable", "unavailable", "unavailable", "answer"], options);
    const decisions = (await upstream.calls(400)).flatMap((outcome) => outcome.decisions);
    assert.ok(decisions.length <= 2, String(decisions));
    const pair = fakeUpstream(["unavailable", "unavailable"], options);
    assert.deepEqual(
      (await pair.calls(100)).flatMap((outcome) => outcome.decisions),
      [],
    );
  });

  test("keep what is known of them when others come and go", async () => {
    const upstream = fakeUpstream(["unavailable", "answer", "answer"], { ...options, circuitFailures: 5 });
    upstream.use([0, 1]);
    await upstream.calls(40);
    assert.equal(upstream.counts[0], 5);
    upstream.use([0, 2]);
    await upstream.calls(10);
    assert.deepEqual(upstream.counts, [5, 35, 10]);
    upstream.use([1, 2]);
    upstream.use([0, 1]);
    await upstream.calls(40);
    assert.equal(upstream.counts[0], 10);
  });
});
