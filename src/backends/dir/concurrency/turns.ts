import { createCallerQueue } from "../../../runtime/caller-queue.ts";

/** Runs a bounded number of tasks at a time; the others wait. */
export interface Turns {
  /**
   * Runs work when it is its turn.
   *
   * @param isWanted called at that moment; if it returns false, the work is skipped and the result is undefined
   * @param caller callers take turns, whatever each of them has waiting, and the work of each runs in order of arrival.
   *   Default: that without a caller
   */
  run<T>(work: () => Promise<T>, isWanted: () => boolean, caller?: string): Promise<T | undefined>;
}

/** Creates turns, of which `limit` are taken at a time. */
export function createTurns(limit: number): Turns {
  /** Starts of waiting work. */
  const waiting = createCallerQueue<() => void>();
  let free = limit;

  function wait(caller: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve, caller);
    return promise;
  }

  function passOn(): void {
    const begin = waiting.shift();
    if (begin === undefined) free++;
    else begin();
  }

  return {
    async run(work, isWanted, caller = "") {
      if (free > 0) free--;
      else await wait(caller);
      try {
        return isWanted() ? await work() : undefined;
      } finally {
        passOn();
      }
    },
  };
}
