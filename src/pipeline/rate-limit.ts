import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "../namespace/call.ts";
import { LanceError } from "../namespace/errors.ts";
import { addressKey, callerKey } from "./caller-key.ts";
import type { Interceptor } from "./interceptor.ts";
import { createTokenBuckets, type Rate } from "./token-buckets.ts";

/** Calls that a rate counts: those of a caller, of an address, or all. */
export type RateScope = keyof typeof KEYS;

/** A bound on calls per second. */
export interface RateLimit extends Rate {
  readonly scope: RateScope;
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
 * Time for which a refusal waits, in milliseconds. The time until the next token would be too short: all calls of a flood wait for
 * the same one.
 */
const DELAY_MS = 250;
/** Number of refusals that wait; the next ones go out at once. */
const MAX_WAITING = 1_000;

/**
 * Bounds the calls per second; it refuses the next call with Throttling. The limits apply in the given order, and a refused call
 * counts for the limits before the one that refuses it.
 *
 * A refusal waits for a moment, so that a client that repeats it at once does not keep the gateway busy.
 */
export function limitRate(limits: readonly RateLimit[]): Interceptor {
  const checks = limits.map((limit) => ({ ...limit, buckets: createTokenBuckets(limit) }));
  let waiting = 0;

  async function refuse(call: Call, { scope, perSecond }: RateLimit, ms: number): Promise<never> {
    if (waiting < MAX_WAITING) {
      waiting += 1;
      try {
        await sleep(DELAY_MS, undefined, { signal: call.signal });
      } finally {
        waiting -= 1;
      }
    }
    const headers = { "retry-after": String(Math.ceil(ms / 1_000)) };
    const message = `no more than ${perSecond} calls per second ${TEXTS[scope]} are served`;
    throw new LanceError("Throttling", message, { headers, limit: "rate" });
  }

  return (call, request, next) => {
    for (const check of checks) {
      const ms = check.buckets.take(KEYS[check.scope](call));
      if (ms > 0) return refuse(call, check, ms);
    }
    return next(call, request);
  };
}
