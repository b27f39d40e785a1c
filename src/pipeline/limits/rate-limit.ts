import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "../../namespace/call/call.ts";
import { addressKey, callerKey } from "../../namespace/call/caller-key.ts";
import { LanceError } from "../../namespace/errors.ts";
import { monotonicNow } from "../../runtime/clocks.ts";
import type { CellShape, KeyedCells } from "../../runtime/threads/keyed-cells.ts";
import type { Interceptor } from "../call/interceptor.ts";

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

/** Calls that a rate counts: those of a caller, of an address, or all. */
export type RateScope = keyof typeof KEYS;

/** A bound on calls per second. */
export interface RateLimit extends Rate {
  readonly scope: RateScope;
}

/** A rate with the buckets that count for it. */
export interface CountedRate {
  readonly limit: RateLimit;
  readonly buckets: TokenBuckets;
}

const KEYS = {
  principal: callerKey,
  address: addressKey,
  total: () => "",
} as const satisfies Readonly<Record<string, (call: Call) => string>>;

const TEXTS: Readonly<Record<RateScope, string>> = {
  principal: "of this caller",
  address: "from this address",
  total: "of all callers",
};

/**
 * Bounds the calls per second; it refuses the next call with Throttling. The limits apply in the given order, and a refused call
 * counts for the limits before the one that refuses it.
 * A refusal waits for a moment.
 */
export function limitRate(limits: readonly CountedRate[]): Interceptor {
  const delay = createRefusalDelay();

  async function refuse(call: Call, { scope, perSecond }: RateLimit, ms: number): Promise<never> {
    await delay(call);
    const headers = { "retry-after": String(Math.ceil(ms / 1_000)) };
    const message = `no more than ${perSecond} calls per second ${TEXTS[scope]} are served`;
    throw new LanceError("Throttling", message, { headers, limit: "rate" });
  }

  /** Passes the limits from a position on; only a bucket that is shared with other gateways makes a call wait. */
  function pass(from: number, ...[call, request, next]: Parameters<Interceptor>): ReturnType<Interceptor> {
    for (let index = from; index < limits.length; index++) {
      const { limit, buckets } = limits[index] as CountedRate;
      const ms = buckets.take(KEYS[limit.scope](call));
      if (typeof ms !== "number")
        return ms.then((later) =>
          later > 0 ? refuse(call, limit, later) : pass(index + 1, call, request, next),
        );
      if (ms > 0) return refuse(call, limit, ms);
    }
    return next(call, request);
  }
  return (call, request, next) => pass(0, call, request, next);
}

/**
 * Shortest and longest time for which a refusal waits, in milliseconds. The time until the next token would be too short: all calls of
 * a flood wait for the same one. With a single time for all, the connections of a flood would come back together, and others would wait
 * behind them.
 */
const WAIT_MS = { shortest: 125, longest: 375 };

/** Number of refusals that wait; the next ones go out at once. */
const MAX_WAITING = 1_000;

/**
 * Waits before the refusal of a call.
 *
 * @throws AbortError when the call is aborted
 */
export type DelayRefusal = (call: Call) => Promise<void>;

/** Creates the delay of refusals, so that a client that repeats a refused call at once does not keep the gateway busy. */
export function createRefusalDelay(): DelayRefusal {
  let waiting = 0;
  return async ({ signal }) => {
    if (waiting >= MAX_WAITING) return;
    waiting += 1;
    try {
      const { shortest, longest } = WAIT_MS;
      await sleep(shortest + Math.random() * (longest - shortest), undefined, { signal });
    } finally {
      waiting -= 1;
    }
  };
}
