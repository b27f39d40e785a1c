import assert from "node:assert/strict";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { test } from "vitest";
import { createThreadGate, createThreadLocks } from "./thread-locks.ts";

/** Runs a long change of table `t` until it gets a message. */
const SOURCE = `
  import { once } from "node:events";
  import { parentPort } from "node:worker_threads";
  import { createThreadGate } from ${JSON.stringify(import.meta.resolve("./thread-locks.ts"))};
  await createThreadGate("test").passSlowly("t", async () => {
    parentPort.postMessage("begun");
    await once(parentPort, "message");
  });
  parentPort.postMessage("ended");
`;

test("a gate shows a long change that another thread makes", async (t) => {
  const gate = createThreadGate("test");
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(SOURCE)}`));
  t.onTestFinished(() => void worker.terminate());
  await once(worker, "message");
  assert.deepEqual([await gate.isBusy("t"), await gate.isBusy("u")], [true, false]);
  await gate.passSlowly("t", async () => assert.equal(await gate.isBusy("t"), true));
  worker.postMessage("end");
  await once(worker, "message");
  assert.equal(await gate.isBusy("t"), false);
});

/** Holds lock `l` until its thread ends. */
const HOLDER = `
  import { parentPort } from "node:worker_threads";
  import { createThreadLocks } from ${JSON.stringify(import.meta.resolve("./thread-locks.ts"))};
  parentPort.on("message", () => {});
  await createThreadLocks("test").withLocks(["l"], () => {
    parentPort.postMessage("held");
    return new Promise(() => {});
  });
`;

test("a lock goes to those who wait for it when the thread that holds it ends", async (t) => {
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(HOLDER)}`));
  t.onTestFinished(() => void worker.terminate());
  await once(worker, "message");
  const locks = createThreadLocks("test");
  const waiting = [1, 2].map((number) => locks.withLocks(["l"], async () => number));
  await worker.terminate();
  assert.deepEqual(await Promise.all(waiting), [1, 2]);
});
