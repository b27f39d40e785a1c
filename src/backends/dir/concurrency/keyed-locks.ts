/** Runs work under names, one at a time for each name. */
export interface KeyedLocks {
  /** Waits for all names, then works. It takes the names in order, so that two callers cannot deadlock. */
  withLocks<T>(names: Iterable<string>, work: () => Promise<T>): Promise<T>;
}

/** Creates locks of this process, which do not affect other processes. */
export function createKeyedLocks(): KeyedLocks {
  const tails = new Map<string, Promise<void>>();

  function withLock<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = tails.get(name) ?? Promise.resolve();
    const result = before.then(work);
    const tail = result.then(
      () => {},
      () => {},
    );
    tails.set(name, tail);
    void tail.then(() => {
      if (tails.get(name) === tail) tails.delete(name);
    });
    return result;
  }
  return {
    withLocks(names, work) {
      return [...new Set(names)].sort().reduceRight((inner, name) => () => withLock(name, inner), work)();
    },
  };
}
