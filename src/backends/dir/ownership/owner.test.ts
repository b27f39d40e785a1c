import assert from "node:assert/strict";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { test } from "vitest";
import { hasEnded, type Owner, THIS_PROCESS } from "./owner.ts";

const SOURCE = `
  import { parentPort } from "node:worker_threads";
  import { THIS_PROCESS } from ${JSON.stringify(import.meta.resolve("./owner.ts"))};
  parentPort.postMessage(THIS_PROCESS);
  parentPort.on("message", () => {});
`;

test("a worker that has ended is known to have ended, although its process goes on", async (t) => {
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(SOURCE)}`));
  t.onTestFinished(() => void worker.terminate());
  const [owner] = (await once(worker, "message")) as [Owner];
  assert.deepEqual([owner.pid, await hasEnded(owner)], [THIS_PROCESS.pid, false]);
  await worker.terminate();
  assert.equal(await hasEnded(owner), true);
  assert.equal(await hasEnded(THIS_PROCESS), false);
});
