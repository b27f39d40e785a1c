import { demandedTime } from "../../../namespace/call/headers.ts";
import { type BackendOperations, callIn, wrapOperations } from "../../../namespace/lance-namespace.ts";
import type { Staleness } from "../concurrency/allow-staleness.ts";

/**
 * Makes every operation see the state that the headers of its call demand ({@link demandedTime}), where reads may be
 * stale: the catalog, and in a bucket the versions of tables.
 */
export function heedFreshness(staleness: Staleness, all: BackendOperations): BackendOperations {
  if (staleness.maxMs <= 0) return all;
  return wrapOperations(all, (handler) => (...args) => {
    const time = demandedTime(callIn(args).headers);
    if (time !== undefined) staleness.demand(time);
    return handler(...args);
  });
}
