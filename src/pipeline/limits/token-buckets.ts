import { monotonicNow } from "../../runtime/clocks.ts";
import type { CellShape, KeyedCells } from "../../runtime/threads/keyed-cells.ts";

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
  take(key: string): number | Promise<number>;
}

/** Buckets that answer at once. */
export interface LocalBuckets extends TokenBuckets {
  take(key: string): number;
}

/** Shape of the numbers of buckets: the rank alone, which is the time at which a bucket is full again. */
export const BUCKETS_SHAPE: CellShape = { numbers: 0 };

/** Part of a millisecond that is only rounding. */
const ROUNDING_MS = 1e-6;

/**
 * Creates buckets, which are full at first, and whose number is bounded: the bucket is forgotten that is next to be full.
 *
 * @param cells of the shape {@link BUCKETS_SHAPE}
 * @param now a clock in milliseconds. Default: the monotonic clock, which the workers of a process share.
 */
export function createTokenBuckets(
  { perSecond, burst }: Rate,
  cells: KeyedCells,
  now: () => number = monotonicNow,
): LocalBuckets {
  const tokenMs = 1_000 / perSecond;
  const fillMs = burst * tokenMs;
  return {
    take(key) {
      const time = now();
      const wait = cells.change(key, (fullAt, at) => {
        const next = Math.max(time, fullAt[at] as number) + tokenMs;
        const missing = next - fillMs - time;
        if (missing > ROUNDING_MS) return missing;
        fullAt[at] = next;
        return 0;
      });
      return wait ?? 0;
    },
  };
}
