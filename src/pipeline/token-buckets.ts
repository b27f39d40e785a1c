/** A rate of calls, with room for more of them at once. */
export interface Rate {
  /** Calls per second, on average. */
  readonly perSecond: number;
  /** Calls that may come at once after a pause. */
  readonly burst: number;
}

/** Token buckets by key: each fills at a rate, and each call takes a token. */
export interface TokenBuckets {
  /** Takes a token; returns 0, or the time until there is one, in milliseconds, and takes nothing. */
  take(key: string): number;
}

interface Bucket {
  tokens: number;
  filledAt: number;
}

/**
 * Creates buckets, which are full at first.
 *
 * @param maxKeys number of keys that are remembered. Beyond it, the bucket that was longest without a call is forgotten, and is full
 *   when its key comes again. Default: 10,000.
 * @param now a clock in milliseconds. Default: the monotonic clock of the process.
 */
export function createTokenBuckets(
  { perSecond, burst }: Rate,
  maxKeys = 10_000,
  now: () => number = () => performance.now(),
): TokenBuckets {
  // In the order of the last call.
  const buckets = new Map<string, Bucket>();
  return {
    take(key) {
      const time = now();
      const bucket = buckets.get(key) ?? { tokens: burst, filledAt: time };
      bucket.tokens = Math.min(burst, bucket.tokens + ((time - bucket.filledAt) * perSecond) / 1_000);
      bucket.filledAt = time;
      buckets.delete(key);
      buckets.set(key, bucket);
      if (buckets.size > maxKeys) buckets.delete(buckets.keys().next().value as string);
      if (bucket.tokens < 1) return ((1 - bucket.tokens) * 1_000) / perSecond;
      bucket.tokens -= 1;
      return 0;
    },
  };
}
