/** Runs a bounded number of tasks at a time; the others wait in order of arrival. */
export interface Turns {
  /**
   * Runs work when it is its turn.
   *
   * @param isWanted called at that moment; if it returns false, the work is skipped and the result is undefined
   */
  run<T>(work: () => Promise<T>, isWanted: () => boolean): Promise<T | undefined>;
}

/** Creates turns, of which `limit` are taken at a time. */
export function createTurns(limit: number): Turns {
  const waiting: (() => void)[] = [];
  let free = limit;

  return {
    async run(work, isWanted) {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        return isWanted() ? await work() : undefined;
      } finally {
        const next = waiting.shift();
        if (next === undefined) free++;
        else next();
      }
    },
  };
}
