/** The signs that this process gives as the owner of something, until it stops. */
export interface Renewal {
  /** Whether the last acknowledged sign is younger than the lease, by the monotonic clock. Once it is not, it never is again. */
  isFresh(): boolean;
  /** Ends the signs, and waits for the one that is on its way; returns whether any was begun. */
  stop(): Promise<boolean>;
}

/** Times of a lease, in milliseconds. */
export interface LeaseTimes {
  /** Interval between signs. */
  readonly renewMs: number;
  /** Silence after which another process takes over. */
  readonly leaseMs: number;
}

/**
 * Gives a sign at each interval. A sign that fails is made up for by the next one; an owner that was silent for the whole lease leaves
 * what it had to the next owner, and gives no more.
 *
 * @param acquiredAt when the owner acquired it, by the monotonic clock, before the request that did so
 */
export function keepRenewing(
  sign: () => Promise<unknown>,
  { renewMs, leaseMs }: LeaseTimes,
  acquiredAt: number,
): Renewal {
  let renewedAt = acquiredAt;
  let hasSigned = false;
  let signing: Promise<void> | undefined;
  const isFresh = () => performance.now() - renewedAt < leaseMs;
  async function renew(): Promise<void> {
    const startedAt = performance.now();
    hasSigned = true;
    try {
      await sign();
      renewedAt = startedAt;
    } catch {
      // The next sign is due in a moment.
    } finally {
      signing = undefined;
    }
  }
  const timer = setInterval(() => {
    if (isFresh()) signing ??= renew();
    else clearInterval(timer);
  }, renewMs).unref();
  return {
    isFresh,
    async stop() {
      clearInterval(timer);
      await signing;
      return hasSigned;
    },
  };
}
