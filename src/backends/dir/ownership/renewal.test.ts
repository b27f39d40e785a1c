import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, onTestFinished, test, vi } from "vitest";
import { createSilence, keepRenewing } from "./renewal.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
afterEach(() => void vi.useRealTimers());

const TIMES = { renewMs: 10, leaseMs: 35 };

test("an owner whose signs are acknowledged stays fresh, and one without signs does not", async () => {
  const renewal = keepRenewing(async () => {}, TIMES, performance.now());
  await vi.advanceTimersByTimeAsync(1_000);
  assert.equal(renewal.isFresh(), true);
  assert.equal(await renewal.stop(), true);
  await vi.advanceTimersByTimeAsync(TIMES.leaseMs);
  assert.equal(renewal.isFresh(), false);
});

test("a sign that fails is made up for by the next one", async () => {
  let signs = 0;
  const failing = async () => {
    if (++signs % 3 !== 0) throw new Error("the storage fails");
  };
  const renewal = keepRenewing(failing, TIMES, performance.now());
  await vi.advanceTimersByTimeAsync(1_000);
  assert.equal(renewal.isFresh(), true);
  await renewal.stop();
});

test("a late owner never gets back what it lost, and gives no more signs", async () => {
  let isBroken = true;
  let signs = 0;
  const sign = async () => {
    signs++;
    if (isBroken) throw new Error("the storage fails");
  };
  const renewal = keepRenewing(sign, TIMES, performance.now());
  await vi.advanceTimersByTimeAsync(TIMES.leaseMs + 1);
  isBroken = false;
  const before = signs;
  await vi.advanceTimersByTimeAsync(1_000);
  assert.equal(renewal.isFresh(), false);
  assert.equal(signs, before);
  await renewal.stop();
});

test("a freshness counts from the begin of the request that was acknowledged", async () => {
  const answers: (() => void)[] = [];
  const sign = () => new Promise<void>((resolve) => answers.push(resolve));
  const renewal = keepRenewing(sign, TIMES, performance.now());
  await vi.advanceTimersByTimeAsync(30);
  assert.equal(answers.length, 1, "signs do not overlap");
  answers[0]?.();
  await vi.advanceTimersByTimeAsync(0);
  const stopped = renewal.stop();
  await vi.advanceTimersByTimeAsync(16);
  assert.equal(renewal.isFresh(), false);
  await stopped;
});

test("the end waits for the sign that is on its way, and says whether there was one", async () => {
  let answer = () => {};
  const sign = () =>
    new Promise<void>((resolve) => {
      answer = resolve;
    });
  const renewal = keepRenewing(sign, TIMES, performance.now());
  await vi.advanceTimersByTimeAsync(TIMES.renewMs);
  let ended: boolean | undefined;
  void renewal.stop().then((hasSigned) => {
    ended = hasSigned;
  });
  await vi.advanceTimersByTimeAsync(5);
  assert.equal(ended, undefined);
  answer();
  await vi.advanceTimersByTimeAsync(0);
  assert.equal(ended, true);
  assert.equal(await keepRenewing(sign, TIMES, performance.now()).stop(), false);
});

describe("silence", () => {
  /** Creates a measure of silence whose two clocks the test moves. */
  function openSilence() {
    const clocks = { storage: 1_000_000, monotonic: 0 };
    vi.spyOn(performance, "now").mockImplementation(() => clocks.monotonic);
    onTestFinished(() => void vi.restoreAllMocks());
    const silence = createSilence({ now: async () => clocks.storage });
    const pass = (ms: number) => {
      clocks.storage += ms;
      clocks.monotonic += ms;
    };
    return { clocks, pass, isSilent: (signedAt: number, key = "k") => silence.isLonger(key, signedAt, 60) };
  }

  test("silence counts by the storage's clock, also while it is set on", async () => {
    const { clocks, pass, isSilent } = openSilence();
    const signedAt = clocks.storage;
    pass(60);
    assert.equal(await isSilent(signedAt), false);
    pass(1);
    assert.equal(await isSilent(signedAt), true);
    clocks.storage += 3_600_000;
    assert.equal(await isSilent(clocks.storage - 61), true);
  });

  test("silence after a sign from the future counts from the first look, by the monotonic clock", async () => {
    const { clocks, pass, isSilent } = openSilence();
    const signedAt = clocks.storage;
    clocks.storage -= 3_600_000;
    pass(1_000);
    assert.equal(await isSilent(signedAt), false);
    pass(60);
    assert.equal(await isSilent(signedAt), false);
    assert.equal(await isSilent(signedAt, "another"), false);
    pass(1);
    assert.equal(await isSilent(signedAt), true);
  });

  test("an owner that gives signs is not silent, however often the clock is set", async () => {
    const { clocks, pass, isSilent } = openSilence();
    let signedAt = clocks.storage;
    for (const set of [-3_600_000, 0, -60_000, -1_000, 0, -86_400_000]) {
      clocks.storage += set;
      assert.equal(await isSilent(signedAt), false, `before the sign, ${set}`);
      pass(5);
      assert.equal(await isSilent(signedAt), false, `before the sign, ${set}`);
      signedAt = clocks.storage;
      pass(50);
      assert.equal(await isSilent(signedAt), false, `after the sign, ${set}`);
    }
  });
});
