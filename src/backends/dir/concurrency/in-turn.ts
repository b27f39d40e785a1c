import { type EarlyEnding, untilEarlyEnd } from "./early-end.ts";
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
