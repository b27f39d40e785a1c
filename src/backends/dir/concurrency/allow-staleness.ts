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
export function allowStaleness(
  check: () => Promise<void>,
  staleness: Pick<Staleness, "maxMs" | "notBefore">,
  isBehind: () => boolean = () => false,
): () => Promise<void> {
  const { maxMs } = staleness;
  if (maxMs <= 0) return check;
  let checkedAt = Number.NEGATIVE_INFINITY;
  let isRenewing = false;
  async function renew(): Promise<void> {
    const now = performance.now();
    await check();
    checkedAt = Math.max(checkedAt, now);
  }
  return async () => {
    const age = performance.now() - checkedAt;
    if (age > maxMs || checkedAt < staleness.notBefore || isBehind()) return renew();
    if (age <= maxMs / 2) return;
    if (isRenewing) return;
    isRenewing = true;
    // A failure shows when a caller has to wait for a check.
    void renew()
      .catch(() => {})
      .finally(() => {
        isRenewing = false;
      });
  };
}
