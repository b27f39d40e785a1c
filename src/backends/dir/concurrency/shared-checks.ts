import { setTimeout as sleep } from "node:timers/promises";

/** How old the state may be that reads of a directory see. */
export interface Staleness {
  /** Maximum age of the last check, in milliseconds; 0 checks each time. */
  readonly maxMs: number;
  /** Time before which no check counts, in milliseconds of `performance.now`. */
  readonly notBefore: number;
  /**
   * Makes all later reads see the state of a time, or a newer one.
   *
   * @param time in epoch milliseconds
   */
  demand(time: number): void;
}

/** Creates a staleness without demands. */
export function createStaleness(maxMs: number): Staleness {
  let notBefore = Number.NEGATIVE_INFINITY;
  return {
    maxMs,
    get notBefore() {
      return notBefore;
    },
    demand(time) {
      notBefore = Math.max(notBefore, performance.now() - Math.max(0, Date.now() - time));
    },
  };
}

/**
 * Creates a check that is skipped if the last one began recently. In the second half of that time, a call starts the
 * next check and does not wait for it, so that calls which follow each other do not wait at all.
 *
 * @param isBehind whether a check would certainly find something. Default: nobody knows.
 */
export function allowStaleness<T extends readonly unknown[]>(
  check: (...how: T) => Promise<void>,
  staleness: Pick<Staleness, "maxMs" | "notBefore">,
  isBehind: () => boolean = () => false,
): (...how: T) => Promise<void> {
  const { maxMs } = staleness;
  if (maxMs <= 0) return check;
  let checkedAt = Number.NEGATIVE_INFINITY;
  let isRenewing = false;
  async function renew(...how: T): Promise<void> {
    const now = performance.now();
    await check(...how);
    checkedAt = Math.max(checkedAt, now);
  }
  return async (...how) => {
    const age = performance.now() - checkedAt;
    if (age > maxMs || checkedAt < staleness.notBefore || isBehind()) return renew(...how);
    if (age <= maxMs / 2) return;
    if (isRenewing) return;
    isRenewing = true;
    // A failure shows when a caller has to wait for a check.
    void renew(...how)
      .catch(() => {})
      .finally(() => {
        isRenewing = false;
      });
  };
}

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
