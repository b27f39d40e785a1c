import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "../../namespace/call/call.ts";
import { addressKey, callerKey } from "../../namespace/call/caller-key.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Interceptor } from "../call/interceptor.ts";
import type { Rate, TokenBuckets } from "./token-buckets.ts";

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
