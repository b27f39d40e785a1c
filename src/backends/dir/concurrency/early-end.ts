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
