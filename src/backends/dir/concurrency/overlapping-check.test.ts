import assert from "node:assert/strict";
import { expect, test } from "vitest";
import { createOverlappingCheck } from "./overlapping-check.ts";

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
