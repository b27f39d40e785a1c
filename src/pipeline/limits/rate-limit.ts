import type { Call } from "../../namespace/call/call.ts";
import { addressKey, callerKey } from "../../namespace/call/caller-key.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Interceptor } from "../call/interceptor.ts";
import { createRefusalDelay } from "./refusal-delay.ts";
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
