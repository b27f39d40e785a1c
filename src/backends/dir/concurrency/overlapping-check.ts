import { setTimeout as sleep } from "node:timers/promises";

/** Maximum number of checks that run at the same time. */
const OVERLAP = 4;

/** Longest pause between the starts of two checks, in milliseconds, whatever a check takes. */
const MAX_PAUSE_MS = 25;

/**
 * Shares a check that takes long among concurrent callers, like {@link createSharedCheck}, but does not wait for the end
 * of a running check before it starts the next one.
 *
 * A caller gets a check that starts after the call. Checks start evenly spread over the time that a check takes, so a
 * caller waits for its own check and a fraction of another one.
 */
export function createOverlappingCheck<T>(check: () => Promise<T>): () => Promise<T> {
  const running = new Set<Promise<unknown>>();
  let next: Promise<T> | undefined;
  let startedAt = Number.NEGATIVE_INFINITY;
  let pauseMs = 0;

  function start(): Promise<T> {
    const begun = performance.now();
    startedAt = begun;
    const result = check();
    const ended: Promise<unknown> = result
      .then(
        () => {},
        () => {},
      )
      .then(() => {
        pauseMs = Math.min((performance.now() - begun) / OVERLAP, MAX_PAUSE_MS);
        running.delete(ended);
      });
    running.add(ended);
    return result;
  }
  const remainingMs = () => startedAt + pauseMs - performance.now();
  async function untilDue(): Promise<void> {
    while (running.size >= OVERLAP) await Promise.race(running);
    const wait = remainingMs();
    if (wait > 0) await sleep(wait);
  }
  return () => {
    if (next !== undefined) return next;
    if (running.size < OVERLAP && remainingMs() <= 0) return start();
    next = untilDue().then(() => {
      next = undefined;
      return start();
    });
    return next;
  };
}
