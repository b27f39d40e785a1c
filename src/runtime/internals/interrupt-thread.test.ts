import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { onTestFinished, test } from "vitest";
import { interruptThread, startInterruptible } from "./interrupt-thread.ts";

/** Blocks itself whenever it is asked to, in several phases of its event loop, and says so first. */
const PROGRAM = `
  const { parentPort } = require("node:worker_threads");
  const { allowInterruption } = require(${JSON.stringify(join(import.meta.dirname, "interrupt-thread.ts"))});
  allowInterruption();
  function block() {
    parentPort.postMessage("blocks");
    for (;;);
  }
  const ways = {
    message: block,
    timer: () => setTimeout(block),
    tick: () => process.nextTick(block),
    microtask: () => void Promise.resolve().then(block),
    immediate: () => setImmediate(block),
    "second immediate": () => {
      setImmediate(() => {});
      setImmediate(block);
      setImmediate(() => {});
    },
    answer: () => void require("node:fs").stat("/", block),
    wait: () => {
      parentPort.postMessage("blocks");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    },
  };
  parentPort.on("message", (way) =>
    way in ways ? ways[way]() : setTimeout(() => setImmediate(() => parentPort.postMessage("turns"))),
  );
`;

const WAYS = [
  "message",
  "timer",
  "tick",
  "microtask",
  "immediate",
  "second immediate",
  "immediate",
  "answer",
  "wait",
];

/** Has the process look as if it had been started with these options. */
function pretendOptions(...options: readonly string[]): void {
  const own = process.execArgv.splice(0, Infinity, ...options);
  onTestFinished(() => void process.execArgv.splice(0, Infinity, ...own));
}

test("a blocked thread goes on with its event loop when it is interrupted, however often", async (t) => {
  pretendOptions();
  const threads = [1, 2].map(() => startInterruptible(PROGRAM, { eval: true }));
  assert.ok(threads.every(({ isInterruptible }) => isInterruptible));
  const workers = threads.map(({ worker }) => worker);
  t.onTestFinished(async () => {
    for (const worker of workers) await worker.terminate();
  });
  const [worker, other] = workers as [Worker, Worker];
  for (const way of WAYS) {
    worker.postMessage(way);
    assert.deepEqual(await once(worker, "message"), ["blocks"], way);
    assert.equal(await interruptThread(worker.threadId, 60_000), true, way);
    for (const thread of [worker, other]) {
      thread.postMessage("");
      assert.deepEqual(await once(thread, "message"), ["turns"], way);
    }
  }
});

test("a process with options that Node takes for no thread gets one that cannot be interrupted", async () => {
  pretendOptions("--max-old-space-size=1000");
  const { worker, isInterruptible } = startInterruptible("", { eval: true });
  assert.equal(isInterruptible, false);
  await worker.terminate();
});
