import type { KeyedLocks } from "./keyed-locks.ts";

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
