import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "../../namespace/call/call.ts";

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
