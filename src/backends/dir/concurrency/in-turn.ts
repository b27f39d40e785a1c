import type { KeyedLocks } from "./keyed-locks.ts";

/**
 * Runs work after other work under the same name, but waits for its turn no longer than a limit. Late work runs beside
 * the others, and still ends before its turn does.
 *
 * @param limitMs longest wait, in milliseconds
 */
export function inTurn<T>(
  locks: KeyedLocks,
  name: string,
  limitMs: number,
  work: () => Promise<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let begun: Promise<void> | undefined;
  const begin = (): Promise<void> => {
    begun ??= work().then(resolve, reject);
    return begun;
  };
  const timer = setTimeout(begin, limitMs);
  locks
    .withLocks([name], () => {
      clearTimeout(timer);
      return begin();
    })
    .catch(reject);
  return promise;
}
