import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { holdThreads } from "./hold-threads.ts";

const MODULE = JSON.stringify(new URL("hold-threads.ts", import.meta.url).href);

/** Counts turns of its event loop, and waits when it is asked to. */
const PROGRAM = `
import { parentPort, workerData } from "node:worker_threads";
import { waitWhileHeld } from ${MODULE};

const cells = new Int32Array(workerData);
parentPort.on("message", ({ memory }) => waitWhileHeld(memory));
setInterval(() => Atomics.add(cells, 0, 1), 1);
parentPort.postMessage("ready");
`;

async function startCounter() {
  const turns = new Int32Array(new SharedArrayBuffer(4));
  const program = new URL(`data:text/javascript,${encodeURIComponent(PROGRAM)}`);
  const worker = new Worker(program, { workerData: turns.buffer });
  onTestFinished(async () => void (await worker.terminate()));
  await once(worker, "message");
  return {
    send: (message: unknown) => worker.postMessage(message),
    turns: () => Atomics.load(turns, 0),
  };
}

async function expectTurns(counters: readonly { turns(): number }[]): Promise<void> {
  for (const { turns } of counters) {
    const before = turns();
    await expect.poll(turns).toBeGreaterThan(before);
  }
}

test("works while no thread runs, and lets them go on", async () => {
  const counters = await Promise.all([startCounter(), startCounter()]);
  const all = () => counters.map(({ turns }) => turns());
  let seen: number[][] = [];
  const work = () => {
    const before = all();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    seen = [before, all()];
  };
  while (seen.length === 0) await holdThreads(counters, 50, work);
  expect(seen[1]).toEqual(seen[0]);
  await expectTurns(counters);
});

test("does nothing if a thread does not come, and the others go on", async () => {
  const counter = await startCounter();
  const work = () => expect.unreachable();
  await holdThreads([counter, { send: () => {} }], 50, work);
  await expectTurns([counter]);
});
