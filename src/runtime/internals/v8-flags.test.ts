import { execFile } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { constants, PerformanceObserver } from "node:perf_hooks";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { assert, expect, test } from "vitest";
import { collectInParts, noteReceived, v8Collector } from "./v8-flags.ts";

const MODULE = JSON.stringify(new URL("v8-flags.ts", import.meta.url).href);
const CACHE = join(import.meta.dirname, "../../../node_modules/.cache/compiled");

/** Prints whether V8 has compiled a function that is called often in the pause, and waits until it compiles it afterwards. */
const PROGRAM = `
import { setImmediate as turn } from "node:timers/promises";
import { pauseCompilers, resumeCompilers } from ${MODULE};

const status = new Function("f", "return %GetOptimizationStatus(f)");
const add = (a, b) => a + b;
async function callOften() {
  for (let time = 0; time < 100; time++) {
    for (let i = 0; i < 10_000; i++) add(i, time);
    await turn();
  }
}
pauseCompilers();
add(1, 1);
const interpreted = status(add);
await callOften();
console.log(status(add) === interpreted ? "interpreted" : "compiled");
resumeCompilers();
while (status(add) === interpreted) await callOften();
console.log("compiled");
`;

test.each([
  { state: "without a code cache", cache: undefined, paused: "interpreted" },
  { state: "with a code cache", cache: CACHE, paused: "compiled" },
])("functions are $paused in a pause $state, and compiled afterwards", async ({ cache, paused }) => {
  const args = ["--allow-natives-syntax", "--input-type=module", "--eval", PROGRAM];
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  if (cache !== undefined) env["NODE_COMPILE_CACHE"] = cache;
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  expect(stdout).toBe(`${paused}\ncompiled\n`);
});

test("gc collects all garbage, and takes the options of its asynchronous kinds", async () => {
  const collect = v8Collector();
  const reference = new WeakRef({});
  // A look at a reference keeps its object until the turn of the event loop ends.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  assert.equal(reference.deref(), undefined);
  await collect({ type: "minor", execution: "async" });
  await collect({ type: "major", execution: "async", flavor: "last-resort" });
});

/** Takes the function many times, as soon as four threads are about to. */
const TAKER = `
const { workerData: ready } = require("node:worker_threads");
async function take() {
  await import(${MODULE});
  Atomics.add(ready, 0, 1);
  while (Atomics.load(ready, 0) < 4);
  for (let time = 0; time < 30; time++) (await import(${MODULE} + "?" + time)).v8Collector();
}
void take();
`;

test("threads can take gc at the same time", async () => {
  const workerData = new Int32Array(new SharedArrayBuffer(4));
  const threads = Array.from({ length: 4 }, () => new Worker(TAKER, { eval: true, workerData }));
  await Promise.all(threads.map((thread) => once(thread, "exit")));
});

test("a program that was started with --expose-gc keeps it, and no other gets it", async () => {
  const program = `
import { runInNewContext } from "node:vm";
import { v8Collector } from ${MODULE};
v8Collector()();
console.log(runInNewContext("typeof gc"));
`;
  for (const [flags, shown] of [
    [["--expose-gc"], "function"],
    [[], "undefined"],
  ] as const) {
    const args = [...flags, "--input-type=module", "--eval", program];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(stdout).toBe(`${shown}\n`);
  }
});

test("the youngest objects are collected whenever 16 MiB of bodies have arrived", async () => {
  let collections = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind, flags } = (entry as PerformanceEntry & { detail: { kind: number; flags: number } })
        .detail;
      const isForced = (flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0;
      if (kind === constants.NODE_PERFORMANCE_GC_MINOR && isForced) collections++;
    }
  });
  observer.observe({ entryTypes: ["gc"] });
  for (let wanted = 1; wanted <= 3; wanted++) {
    for (let mebibyte = 0; mebibyte < 16; mebibyte++) noteReceived(2 ** 20);
    await expect.poll(() => collections, { timeout: 20_000 }).toBe(wanted);
  }
  observer.disconnect();
});

test("a collection in parts collects all garbage, and holds no turn for all of it", async () => {
  const kinds = new Set<unknown>();
  let forced = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind, flags } = (entry as PerformanceEntry & { detail: { kind: number; flags: number } })
        .detail;
      kinds.add(kind);
      if ((flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0) forced++;
    }
  });
  observer.observe({ entryTypes: ["gc"] });
  const reference = new WeakRef({});
  await new Promise((resolve) => setImmediate(resolve));
  await Promise.all([collectInParts(), collectInParts()]);
  assert.equal(reference.deref(), undefined);
  await expect.poll(() => kinds).toContain(constants.NODE_PERFORMANCE_GC_INCREMENTAL);
  observer.disconnect();
  assert.equal(forced, 0);
});

test("a collection in parts prints nothing in somebody's program, in no thread", async () => {
  const program = `
import { isMainThread, Worker } from "node:worker_threads";
import { collectInParts } from ${MODULE};

process.on("warning", ({ message }) => console.log(message));
await collectInParts();
process.emitWarning("of the program");
if (isMainThread) await new Promise((end) => new Worker(new URL(import.meta.url)).on("exit", end));
`;
  const url = `data:text/javascript,${encodeURIComponent(program)}`;
  const args = ["--input-type=module", "--eval", `import ${JSON.stringify(url)}`];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toBe("of the program\n".repeat(2));
  expect(stderr).not.toMatch(/Experimental/);
});
