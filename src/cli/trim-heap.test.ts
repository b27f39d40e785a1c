import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";
import { test } from "vitest";
import { trimHeapWhenIdle } from "./trim-heap.ts";

const log = pino({ level: "silent" });

test("collects what nobody refers to once the event loop is idle", async () => {
  const garbage = new WeakRef({ text: "left by the start" });
  trimHeapWhenIdle(log, { lookMs: 50 });
  // A look at the reference keeps its object until the turn of the event loop ends; expect.poll would keep the loop busy.
  while (garbage.deref() !== undefined) await sleep(100);
});

test("returns the memory of the start once, and that of the youngest objects after each later time of work", async () => {
  const { collected, collector } = recorder();
  trimHeapWhenIdle(log, { lookMs: 50, longWorkMs: 60_000, collector });
  while (collected.length === 0) await sleep(100);
  work(100);
  while (collected.length === 1) await sleep(100);
  assert.deepEqual(collected.slice(0, 2), ["all", "young"]);
});

test("keeps the compiled code of a loop that has worked for long before it is idle", async () => {
  const { collected, collector } = recorder();
  trimHeapWhenIdle(log, { lookMs: 50, longWorkMs: 0, collector });
  while (collected.length === 0) await sleep(100);
  assert.equal(collected[0], "young");
});

function recorder() {
  const collected: string[] = [];
  const collector = {
    collectAll: async () => void collected.push("all"),
    collectYoung: async () => void collected.push("young"),
  };
  return { collected, collector };
}

/** Keeps the event loop busy. */
function work(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}
