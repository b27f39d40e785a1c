import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";
import { test } from "vitest";
import { trimHeapWhenIdle } from "./trim-heap.ts";

test("collects what nobody refers to once the event loop is idle", async () => {
  const garbage = new WeakRef({ text: "left by the start" });
  trimHeapWhenIdle(pino({ level: "silent" }), { lookMs: 50 });
  // A look at the reference keeps its object until the turn of the event loop ends; expect.poll would keep the loop busy.
  while (garbage.deref() !== undefined) await sleep(100);
});

test("leaves a loop alone that has worked for long before it is idle", async () => {
  const collected: string[] = [];
  const log = pino({ level: "silent" });
  const collectAs = (name: string) => async () => void collected.push(name);
  trimHeapWhenIdle(log, { lookMs: 50, longWorkMs: 0, collect: collectAs("after work") });
  trimHeapWhenIdle(log, { lookMs: 50, longWorkMs: 60_000, collect: collectAs("after the start") });
  while (collected.length === 0) await sleep(100);
  assert.deepEqual(collected, ["after the start"]);
});
