import { setTimeout as sleep } from "node:timers/promises";

/** A thread that calls {@link waitWhileHeld} when it is asked to. */
export interface HoldableThread {
  send(message: { readonly type: "hold"; readonly memory: SharedArrayBuffer }): void;
}

/** Cells of the memory of a hold: the number of threads that wait, and whether it is over. */
const WAITING = 0;
const OVER = 1;

/** Interval between looks at the threads, in milliseconds. */
const LOOK_MS = 1;

/** Waits in a thread until its hold is over; no JavaScript runs in the thread meanwhile. */
export function waitWhileHeld(memory: SharedArrayBuffer): void {
  const cells = new Int32Array(memory);
  Atomics.add(cells, WAITING, 1);
  Atomics.wait(cells, OVER, 0);
}

/**
 * Holds threads, and calls back while all of them wait. If one of them does not come in time, the others go on, and nothing
 * else happens.
 *
 * @param patienceMs longest time that threads wait for others that are at work, in milliseconds
 */
export async function holdThreads(
  threads: readonly HoldableThread[],
  patienceMs: number,
  work: () => void,
): Promise<void> {
  const memory = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
  const cells = new Int32Array(memory);
  for (const thread of threads) thread.send({ type: "hold", memory });
  const until = performance.now() + patienceMs;
  try {
    while (Atomics.load(cells, WAITING) < threads.length) {
      if (performance.now() > until) return;
      await sleep(LOOK_MS);
    }
    work();
  } finally {
    Atomics.store(cells, OVER, 1);
    Atomics.notify(cells, OVER);
  }
}
