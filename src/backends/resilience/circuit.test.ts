import assert from "node:assert/strict";
import { pino } from "pino";
import { describe, test, vi } from "vitest";
import { givenUp, kindOf, useClock } from "../../../test/fixtures/upstreams/clock.ts";
import { fakeUpstream, faultError, pass } from "../../../test/fixtures/upstreams/resilience.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createResilience } from "./create-resilience.ts";

useClock();

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

  test("lets a call try in time, also when the clock is set back meanwhile", async () => {
    const upstream = fakeUpstream(["unavailable"], options);
    await upstream.calls(3);
    vi.setSystemTime(Date.now() - 24 * 60 * 60 * 1_000);
    await pass(1_010);
    upstream.behaviours[0] = "answer";
    assert.deepEqual((await upstream.call()).decisions, ["circuit_half_open"]);
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

  test("lets another call probe when the probe is slow and a call from before gets its answer", async () => {
    const attempts: PromiseWithResolvers<string>[] = [];
    const { run } = createResilience([{ target: 0, name: "0" }], {
      ...options,
      retries: 0,
      silenceMs: 5_000,
      log: pino({ level: "silent" }),
    });
    const call = () => {
      const begun = run(
        { signal: new AbortController().signal, deadline: undefined, note() {} },
        "unsent",
        () => {
          const attempt = Promise.withResolvers<string>();
          attempts.push(attempt);
          return attempt.promise;
        },
      );
      return begun.catch((error: LanceError) => error.kind);
    };
    const before = call();
    for (let failed = 1; failed <= 3; failed += 1) {
      const failing = call();
      attempts[failed]?.reject(faultError("unavailable"));
      assert.equal(await failing, "ServiceUnavailable");
    }
    await pass(1_010);
    void call();
    await pass(2_000, 100);
    attempts[0]?.resolve("from before");
    assert.equal(await before, "from before");
    await pass(4_000, 100);
    const next = call();
    attempts[5]?.resolve("back");
    assert.equal(await next, "back");
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
