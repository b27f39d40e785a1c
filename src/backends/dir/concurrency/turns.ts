/** Lets a bounded number of pieces of work run at a time; the others wait in the order they came. */
export interface Turns {
  /**
   * Runs work when it is its turn.
   *
   * @param isWanted asked when the turn comes; the work is left out, with undefined, when it is false
   */
  run<T>(work: () => Promise<T>, isWanted: () => boolean): Promise<T | undefined>;
}

/** Creates turns of which `limit` are taken at a time. */
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
