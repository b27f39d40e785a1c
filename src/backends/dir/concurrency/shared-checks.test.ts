import assert from "node:assert/strict";
import { expect, test, vi } from "vitest";
import { allowStaleness, createOverlappingCheck, createStaleness } from "./shared-checks.ts";

test("omits a check for as long as the allowed staleness", async () => {
  let checks = 0;
  const check = async () => {
    checks++;
  };
  const lenient = allowStaleness(check, createStaleness(60_000));
  for (let i = 0; i < 3; i++) await lenient();
  assert.equal(checks, 1);
  const strict = allowStaleness(check, createStaleness(0));
  for (let i = 0; i < 3; i++) await strict();
  assert.equal(checks, 4);
  const failing = allowStaleness(() => Promise.reject(new Error("no")), createStaleness(60_000));
  for (let i = 0; i < 2; i++) await assert.rejects(failing());
});

test("starts the next check in the second half of the allowed staleness, and waits for it only after that", async (t) => {
  t.onTestFinished(() => void vi.restoreAllMocks());
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  const checks: PromiseWithResolvers<void>[] = [];
  const lenient = allowStaleness(() => {
    const check = Promise.withResolvers<void>();
    checks.push(check);
    return check.promise;
  }, createStaleness(100));
  const first = lenient();
  checks[0]?.resolve();
  await first;
  now = 50;
  await lenient();
  assert.equal(checks.length, 1);
  now = 60;
  for (let i = 0; i < 3; i++) await lenient();
  assert.equal(checks.length, 2, "the calls share the check, which has not ended");
  checks[1]?.resolve();
  now = 300;
  const late = lenient();
  checks[2]?.resolve();
  await late;
  assert.equal(checks.length, 3);
});

test("checks again for a demanded time after the last check, and once for a time before it", async (t) => {
  t.onTestFinished(() => void vi.restoreAllMocks());
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  vi.spyOn(Date, "now").mockImplementation(() => 1_000_000 + now);
  let checks = 0;
  const staleness = createStaleness(60_000);
  const lenient = allowStaleness(async () => {
    checks++;
  }, staleness);
  const checksAfter = async (time?: number) => {
    if (time !== undefined) staleness.demand(time);
    await lenient();
    return checks;
  };
  assert.equal(await checksAfter(), 1);
  now = 10;
  assert.equal(await checksAfter(1_000_000), 1, "the state of the last check");
  assert.equal(await checksAfter(1_000_005), 2, "between the last check and the present");
  assert.equal(await checksAfter(1_000_005), 2, "the same time again");
  now = 20;
  assert.equal(await checksAfter(1_000_999), 3, "a time in the future");
  assert.equal(await checksAfter(1_000_001), 3, "an older time");
  assert.equal(await checksAfter(), 3);
});

/** A check whose runs end when the test says so. */
function createRuns() {
  const runs: PromiseWithResolvers<number>[] = [];
  const check = createOverlappingCheck(() => {
    const run = Promise.withResolvers<number>();
    runs.push(run);
    return run.promise;
  });
  return { runs, check };
}

test("a caller gets a check that starts after its call, while earlier ones still run", async () => {
  const { runs, check } = createRuns();
  const calls = [check(), check()];
  assert.equal(runs.length, 2);
  runs[1]?.resolve(2);
  assert.equal(await calls[1], 2);
  runs[0]?.resolve(1);
  assert.equal(await calls[0], 1);
});

test("callers share the next check while as many as may overlap are running", async () => {
  const { runs, check } = createRuns();
  const first = [check(), check(), check(), check()];
  const late = [check(), check(), check()];
  assert.equal(runs.length, 4);
  runs[2]?.resolve(3);
  assert.equal(await first[2], 3);
  await expect.poll(() => runs.length).toBe(5);
  runs[4]?.resolve(5);
  assert.deepEqual(await Promise.all(late), [5, 5, 5]);
});

test("a failed check does not stop the next one", async () => {
  const { runs, check } = createRuns();
  const failing = check();
  runs[0]?.reject(new Error("no"));
  await assert.rejects(failing, /no/);
  const second = check();
  await expect.poll(() => runs.length).toBe(2);
  runs[1]?.resolve(2);
  assert.equal(await second, 2);
});
