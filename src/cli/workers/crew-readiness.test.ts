import assert from "node:assert/strict";
import { test } from "vitest";
import { createCrewReadiness } from "./crew-readiness.ts";
import type { WorkerThread } from "./worker-thread.ts";

test("a process is ready once all workers are, stays ready while one is replaced, and follows those that were ready", () => {
  const threads = [{ ready: false }, { ready: false }];
  let serving = threads.slice(0, 1);
  const changes: boolean[] = [];
  const readiness = createCrewReadiness(
    2,
    () => serving as unknown as WorkerThread[],
    (ready) => changes.push(ready),
  );
  function expectAfter(step: () => void, ready: boolean, what: string): void {
    step();
    readiness.update();
    assert.equal(readiness.ready, ready, what);
  }
  const [first, second] = threads as [{ ready: boolean }, { ready: boolean }];
  const replacement = { ready: false };
  expectAfter(() => (first.ready = true), false, "only one worker has started");
  expectAfter(() => (serving = threads), false, "the second one is not ready yet");
  expectAfter(() => (second.ready = true), true, "both are ready");
  expectAfter(() => (serving = [first]), true, "the second one has ended");
  expectAfter(() => (serving = [first, replacement]), true, "its replacement is not ready yet");
  expectAfter(() => (replacement.ready = true), true, "the replacement is ready");
  expectAfter(() => (replacement.ready = false), false, "the replacement is no longer ready");
  expectAfter(() => (serving = []), false, "nobody serves");
  assert.deepEqual(changes, [true, false]);
});
