import { availableParallelism } from "node:os";
import { createCallerQueue } from "../../../runtime/collections.ts";

/** Runs a bounded number of tasks at a time; the others wait. */
export interface Turns {
  /**
   * Runs work when it is its turn.
   *
   * @param work may give its turn to others before it ends, by the function that it gets
   * @param isWanted called at that moment; if it returns false, the work is skipped and the result is undefined
   * @param caller callers take turns, whatever each of them has waiting, and the work of each runs in order of arrival.
   *   Default: that without a caller
   */
  run<T>(
    work: (leave: () => void) => Promise<T>,
    isWanted: () => boolean,
    caller?: string,
  ): Promise<T | undefined>;
}

/**
 * Creates turns.
 *
 * @param limit number of turns that are taken at a time
 * @param most number of turns that a caller takes at a time. Default: all of them
 */
export function createTurns(limit: number, most = limit): Turns {
  /** Starts of waiting work. */
  const waiting = createCallerQueue<() => void>();
  /** Turns that callers have taken. */
  const taken = new Map<string, number>();
  let free = limit;

  const mayTake = (caller: string) => (taken.get(caller) ?? 0) < most;
  function take(caller: string): void {
    free--;
    taken.set(caller, (taken.get(caller) ?? 0) + 1);
  }

  function wait(caller: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(() => {
      take(caller);
      resolve();
    }, caller);
    return promise;
  }

  function passOn(caller: string): void {
    free++;
    const left = (taken.get(caller) ?? 0) - 1;
    if (left > 0) taken.set(caller, left);
    else taken.delete(caller);
    waiting.shift(mayTake)?.();
  }

  return {
    async run(work, isWanted, caller = "") {
      if (free > 0 && mayTake(caller)) take(caller);
      else await wait(caller);
      let hasTurn = true;
      const leave = () => {
        if (hasTurn) passOn(caller);
        hasTurn = false;
      };
      try {
        return isWanted() ? await work(leave) : undefined;
      } finally {
        leave();
      }
    },
  };
}

/**
 * Creates the turns of work that may hold a thread of the engine for long: the batches of long results, and costly conditions and searches. If every
 * core always worked on these, the engine's short calls would wait behind them. No caller takes the last turn.
 *
 * @param workers number of workers of the process, which divide the turns
 */
export function createEngineTurns(workers = 1): Turns {
  const most = Math.max(1, Math.floor((availableParallelism() - 1) / workers));
  return createTurns(most + 1, most);
}
