import { limitCallers } from "./concurrency.ts";
import type { Interceptor } from "./interceptor.ts";
import { limitQueryTime } from "./query-time.ts";
import { limitRate, type RateLimit, type RateScope } from "./rate-limit.ts";

/** Limits on what a single caller may take from the others. Default of each: no limit. */
export interface CallerLimits {
  readonly rateLimits?: readonly RateLimit[] | undefined;
  /** Concurrent calls of a caller. */
  readonly maxCallerCalls?: number | undefined;
  /** Concurrent downloads of a caller. */
  readonly maxCallerDownloads?: number | undefined;
  /** Duration of a call that reads rows, in milliseconds. */
  readonly maxQueryMs?: number | undefined;
}

/** Returns the step for limits that need no caller, so that strangers cannot keep the later steps busy. */
export function limitAddresses({ rateLimits }: CallerLimits): readonly Interceptor[] {
  return rateStep(rateLimits, ["address"]);
}

/** Returns the steps for the limits of callers that are known. The total comes last, so that refused calls do not use it up. */
export function limitKnownCallers(limits: CallerLimits): readonly Interceptor[] {
  const { rateLimits, maxCallerCalls: calls, maxCallerDownloads: downloads, maxQueryMs } = limits;
  return [
    ...rateStep(rateLimits, ["principal", "total"]),
    ...(calls === undefined ? [] : [limitCallers(calls, "calls")]),
    ...(downloads === undefined ? [] : [limitCallers(downloads, "downloads")]),
    ...(maxQueryMs === undefined ? [] : [limitQueryTime(maxQueryMs)]),
  ];
}

function rateStep(limits: readonly RateLimit[] = [], scopes: readonly RateScope[]): readonly Interceptor[] {
  const own = scopes.flatMap((scope) => limits.filter((limit) => limit.scope === scope));
  return own.length === 0 ? [] : [limitRate(own)];
}
