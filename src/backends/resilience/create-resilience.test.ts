import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test, vi } from "vitest";
import { LanceError, type UpstreamFault } from "../../namespace/errors.ts";
import { fakeUpstream, faultError, type Outcome, pass } from "./fixture.ts";
import type { Repeatable } from "./resilience.ts";

beforeEach(() =>
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"], now: Date.UTC(2030, 0) }),
);
afterEach(() => vi.useRealTimers());

/** Returns the outcome of a call that waits for the clock. */
async function outcomeOf(outcome: Promise<Outcome>, ms = 60_000): Promise<Outcome> {
  let found: Outcome | undefined;
  void outcome.then((value) => {
    found = value;
  });
  for (let passed = 0; passed < ms && found === undefined; passed += 10) await pass(10);
  assert.ok(found, "the call has ended");
  return found;
}

/** Makes a call whose caller gives up after some time. */
function givenUp(
  upstream: ReturnType<typeof fakeUpstream>,
  ms: number,
  repeatable: Repeatable = "unsent",
): Promise<Outcome> {
  const controller = new AbortController();
  setTimeout(() => controller.abort(new LanceError("Cancelled", "gone")), ms);
  return upstream.call(repeatable, { signal: controller.signal });
}

const kindOf = ({ result }: Outcome) => (result instanceof LanceError ? result.kind : "answer");

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

async function outcomesOf(upstream: ReturnType<typeof fakeUpstream>, times: number): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let index = 0; index < times; index += 1) outcomes.push(await outcomeOf(upstream.call()));
  return outcomes;
}

describe("the circuit", () => {
  const options = { retries: 0, circuitFailures: 3, circuitOpenMs: 1_000 };

  test("opens, lets one call try, and opens for longer while that fails", async () => {
    const upstream = fakeUpstream(["unavailable"], options);
    const first = await upstream.calls(3);
    assert.deepEqual(
      first.map(({ decisions }) => decisions),
      [[], [], ["circuit_open"]],
    );
    const refused = await upstream.call();
    assert.deepEqual(refused.decisions, ["circuit_open"]);
    assert.equal((refused.result as LanceError).headers["retry-after"], "1");
    await pass(1_010);
    const probe = await upstream.call();
    assert.deepEqual(probe.decisions, ["circuit_half_open", "circuit_open"]);
    await pass(1_010);
    await upstream.calls(2);
    assert.deepEqual(upstream.counts, [4]);
    upstream.behaviours[0] = "answer";
    await pass(1_000);
    assert.deepEqual((await upstream.call()).decisions, ["circuit_half_open"]);
    assert.deepEqual((await upstream.call()).decisions, []);
  });

  test("lets only one call try", async () => {
    const upstream = fakeUpstream(["reset"], options);
    await upstream.calls(3);
    await pass(1_010);
    upstream.behaviours[0] = "hang";
    void upstream.call();
    assert.equal(kindOf(await upstream.call()), "ServiceUnavailable");
    assert.deepEqual(upstream.counts, [4]);
  });

  test("makes the next call the probe when the caller of the first one gives up", async () => {
    const upstream = fakeUpstream(["reset"], options);
    await upstream.calls(3);
    await pass(1_010);
    for (let round = 0; round < 5; round += 1) {
      upstream.behaviours[0] = "hang";
      const probe = givenUp(upstream, 10);
      assert.deepEqual((await upstream.call()).decisions, ["circuit_open"]);
      await pass(10);
      assert.equal(kindOf(await probe), "Cancelled");
    }
    upstream.behaviours[0] = "reset";
    assert.deepEqual((await upstream.call()).decisions, ["circuit_half_open", "circuit_open"]);
    await pass(1_990);
    assert.deepEqual((await upstream.call()).decisions, ["circuit_open"]);
    upstream.behaviours[0] = "answer";
    await pass(10);
    assert.deepEqual((await upstream.call()).decisions, ["circuit_half_open"]);
  });

  test("does not wait for a probe that gets no answer for as long as its caller does", async () => {
    const upstream = fakeUpstream(["reset"], { ...options, silenceMs: 5_000 });
    await upstream.calls(3);
    await pass(1_010);
    upstream.behaviours[0] = "hang";
    void upstream.call();
    await pass(5_000 + 1_990);
    assert.deepEqual((await upstream.call()).decisions, ["circuit_open"]);
    upstream.behaviours[0] = "answer";
    await pass(20);
    assert.deepEqual((await upstream.call()).decisions, ["circuit_half_open"]);
  });

  test("ignores how calls end that began before it opened", async () => {
    const upstream = fakeUpstream(["hang"], options);
    const old = Array.from({ length: 5 }, () => givenUp(upstream, 6_000));
    upstream.behaviours[0] = "reset";
    await upstream.calls(3);
    await pass(1_010);
    upstream.behaviours[0] = "hang";
    const probe = upstream.call();
    await pass(5_000);
    await Promise.all(old);
    upstream.behaviours[0] = "answer";
    await pass(2_010);
    assert.deepEqual((await upstream.call()).decisions, ["circuit_half_open"]);
    void probe;
  });

  test("opens when callers give up on a silent address", async () => {
    const upstream = fakeUpstream(["hang"], { ...options, silenceMs: 5_000 });
    const calls = Array.from({ length: 3 }, () => givenUp(upstream, 5_000));
    await pass(5_000);
    await Promise.all(calls);
    assert.deepEqual((await upstream.call()).decisions, ["circuit_open"]);
    assert.deepEqual(upstream.counts, [3]);
  });

  test("stays closed for callers who give up early, however many they are", async () => {
    const upstream = fakeUpstream(["hang"], { ...options, silenceMs: 5_000 });
    for (let round = 0; round < 20; round += 1) {
      const calls = Array.from({ length: 5 }, () => givenUp(upstream, 490));
      await pass(490);
      await Promise.all(calls);
    }
    upstream.behaviours[0] = "answer";
    assert.deepEqual((await upstream.call()).decisions, []);
  });

  test("stays closed for slow calls while the address answers others", async () => {
    const upstream = fakeUpstream(["hang"], { ...options, silenceMs: 5_000 });
    for (let round = 0; round < 4; round += 1) {
      upstream.behaviours[0] = "hang";
      const calls = Array.from({ length: 5 }, () => givenUp(upstream, 6_000));
      await pass(10);
      upstream.behaviours[0] = "answer";
      assert.deepEqual((await upstream.call()).decisions, []);
      await pass(6_000, 100);
      await Promise.all(calls);
    }
  });

  test("stays closed for calls that were never sent", async () => {
    const upstream = fakeUpstream(["queue"], { ...options, silenceMs: 5_000 });
    const calls = Array.from({ length: 5 }, () => givenUp(upstream, 6_000));
    await pass(6_000, 100);
    await Promise.all(calls);
    upstream.behaviours[0] = "answer";
    assert.deepEqual((await upstream.call()).decisions, []);
  });

  test("closes for an answer that is an error", async () => {
    const upstream = fakeUpstream(["reset"], options);
    await upstream.calls(3);
    await pass(1_010);
    upstream.behaviours[0] = new LanceError("TableNotFound", "t");
    await upstream.calls(5);
    assert.deepEqual(upstream.counts, [8]);
  });

  test("counts failures in a row only, and not what says nothing of the upstream", async () => {
    const upstream = fakeUpstream(["reset"], options);
    for (let round = 0; round < 5; round += 1) {
      upstream.behaviours[0] = "reset";
      await upstream.calls(2);
      upstream.behaviours[0] = round % 2 === 0 ? "answer" : new LanceError("InvalidInput", "i");
      await upstream.call();
    }
    for (const row of ["throttled", new LanceError("DeadlineExceeded", "d")] as const) {
      upstream.behaviours[0] = row;
      await upstream.calls(5);
    }
    assert.deepEqual(upstream.counts, [25]);
  });
});

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
