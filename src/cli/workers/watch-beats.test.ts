import assert from "node:assert/strict";
import { expect, test } from "vitest";
import { openSharedMemory } from "./shared-memory.ts";
import { watchBeats } from "./watch-beats.ts";

test("a worker without beats is reported once, and one that beats is not", async (t) => {
  const memory = openSharedMemory({ workers: 3, databases: 1 });
  const blocked: number[] = [];
  const beats = setInterval(() => memory.beat(1), 1);
  const watch = watchBeats(memory, 200, (worker) => blocked.push(worker));
  t.onTestFinished(() => {
    clearInterval(beats);
    watch.close();
  });
  for (const worker of [0, 1, 2]) watch.begin(worker, false);
  watch.end(2);
  await expect.poll(() => blocked).toEqual([0]);
  watch.begin(0, true);
  await expect.poll(() => blocked).toEqual([0, 0]);
  assert.ok(!blocked.includes(1));
});
