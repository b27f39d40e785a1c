import type { StorageClock } from "../format/storage-clock.ts";

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

/** Tells for how long the owners of leases and notes have been silent. */
interface Silence {
  /**
   * Whether the owner of something gave its last sign longer ago than a time.
   *
   * By the storage's clock, a sign is never in the future, unless that clock was set back after it. A sign from the future is too old once this
   * process has seen nothing but it for that time, by its monotonic clock. An owner that is alive gives another sign
   * meanwhile, so it is not taken for silent however often the clock is set.
   *
   * @param key identifies what the sign is of
   * @param signedAt time of the last sign by the storage's clock, in milliseconds since 1970
   * @param ms the longest time between signs of an owner that is alive, in milliseconds
   */
  isLonger(key: string, signedAt: number, ms: number): Promise<boolean>;
}

/** Maximum number of remembered signs from the future. */
const MAX_SIGNS = 10_000;

/** Creates the measure of silence of a process. */
export function createSilence(clock: StorageClock): Silence {
  /** The signs from the future, and when this process saw them first, by its monotonic clock. */
  const ahead = new Map<string, { readonly signedAt: number; readonly seenAt: number }>();

  return {
    async isLonger(key, signedAt, ms) {
      const age = (await clock.now()) - signedAt;
      if (age >= 0) {
        ahead.delete(key);
        return age > ms;
      }
      const seen = ahead.get(key);
      if (seen?.signedAt === signedAt) return performance.now() - seen.seenAt > ms;
      if (ahead.size >= MAX_SIGNS) ahead.clear();
      ahead.set(key, { signedAt, seenAt: performance.now() });
      return false;
    },
  };
}
