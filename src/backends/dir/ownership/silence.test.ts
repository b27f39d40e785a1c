import assert from "node:assert/strict";
import { onTestFinished, test, vi } from "vitest";
import { createSilence } from "./silence.ts";

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
