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

/**
 * Runs work after other work under the same name, but waits for its turn no longer than a limit. Late work runs beside
 * the others; its turn does not end before the work lets others follow.
 *
 * @param limitMs longest wait, in milliseconds
 */
export function inTurn<T>(
  locks: KeyedLocks,
  name: string,
  limitMs: number,
  work: EarlyEnding<T>,
): Promise<T> {
  const takeTurn = (held: () => Promise<void>) => {
    let begun: Promise<void> | undefined;
    const begin = (): Promise<void> => {
      begun ??= held();
      return begun;
    };
    const timer = setTimeout(begin, limitMs);
    return locks.withLocks([name], () => {
      clearTimeout(timer);
      return begin();
    });
  };
  return untilEarlyEnd(takeTurn, work);
}

/** Work that may let others follow before it ends, by a call of `end`. Without the call, they follow when it ends. */
export type EarlyEnding<T> = (end: () => void) => Promise<T>;

/**
 * Runs work under a lock that lasts until the work calls `end`, or ends itself.
 *
 * @param lock runs what it gets under the lock
 */
export function untilEarlyEnd<T>(
  lock: (held: () => Promise<void>) => Promise<void>,
  work: EarlyEnding<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const held = () =>
    new Promise<void>((end) => {
      work(end).then(resolve, reject).finally(end);
    });
  lock(held).catch(reject);
  return promise;
}
