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
