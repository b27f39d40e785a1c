/**
 * Returns a pause that doubles with each repetition, in milliseconds. Callers that fail together multiply it by a random number.
 *
 * @param times number of repetitions before this one
 * @param firstMs pause before the first repetition
 * @param longestMs longest pause
 */
export function backoffMs(times: number, firstMs: number, longestMs = Number.POSITIVE_INFINITY): number {
  return Math.min(firstMs * 2 ** times, longestMs);
}
