import { LanceError } from "../namespace/errors.ts";

/** The longest delay of a timer, in milliseconds: about 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Returns the time of a call in milliseconds: the one that it brings, or the default, which is 0 for no limit. */
export function timeAllowed(given: number | undefined, defaultMs: number): number | undefined {
  return given ?? (defaultMs > 0 ? defaultMs : undefined);
}

/** Returns the error of a call whose deadline has passed. */
export function deadlinePassed(): LanceError {
  return new LanceError("DeadlineExceeded", "the deadline of the call has passed");
}

/** Ends a call with an error when its time is over. A time that exceeds the longest timer never ends it. */
export function startDeadline(
  milliseconds: number,
  end: (error: LanceError) => void,
): NodeJS.Timeout | undefined {
  if (milliseconds > LONGEST_TIMER_MS) return undefined;
  return setTimeout(() => end(deadlinePassed()), milliseconds);
}
