import type { Call } from "../../../namespace/call.ts";
import { demandedTime } from "../../../namespace/freshness.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import type { Staleness } from "../concurrency/allow-staleness.ts";

type Operations = Pick<Backend, "operations" | "extensions">;

/**
 * Makes every operation see the state that the headers of its call demand ({@link demandedTime}), where reads may be
 * stale. Rows are read at their newest version in any case; it is the catalog that may be old.
 */
export function heedFreshness(staleness: Staleness, all: Operations): Operations {
  if (staleness.maxMs <= 0) return all;
  const heed = (handlers: object = {}) =>
    Object.fromEntries(
      Object.entries(handlers).map(([localName, handler]) => [
        localName,
        (...request: unknown[]) => {
          const time = demandedTime((request.at(-1) as Call).headers);
          if (time !== undefined) staleness.demand(time);
          return handler(...request);
        },
      ]),
    );
  return { operations: heed(all.operations), extensions: heed(all.extensions) };
}
