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
  /** Starts of waiting work, by caller. The first caller is next, and goes to the end with what it still has. */
  const waiting = new Map<string, (() => void)[]>();
  let free = limit;

  function wait(caller: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const own = waiting.get(caller);
    if (own === undefined) waiting.set(caller, [resolve]);
    else own.push(resolve);
    return promise;
  }

  function passOn(): void {
    const [first] = waiting;
    if (first === undefined) {
      free++;
      return;
    }
    const [caller, own] = first;
    const begin = own.shift();
    waiting.delete(caller);
    if (own.length > 0) waiting.set(caller, own);
    begin?.();
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
