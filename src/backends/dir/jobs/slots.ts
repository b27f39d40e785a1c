import { cancellationOf } from "../engine/wait.ts";

/** Lets a bounded number of pieces of work run at the same time; the others wait in order. */
export interface Slots {
  /**
   * Waits for a slot, then works in it.
   *
   * @throws LanceError Cancelled, or the signal's own reason, when it aborts before there is a slot
   */
  run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

/** Creates slots. */
export function createSlots(count: number): Slots {
  const waiting = new Set<() => void>();
  let free = count;

  function take(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(cancellationOf(signal));
    if (free > 0) {
      free--;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        waiting.delete(start);
        reject(cancellationOf(signal));
      };
      const start = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      waiting.add(start);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }
  function give(): void {
    const [next] = waiting;
    if (next === undefined) {
      free++;
      return;
    }
    waiting.delete(next);
    next();
  }
  return {
    async run(signal, work) {
      await take(signal);
      try {
        return await work();
      } finally {
        give();
      }
    },
  };
}
