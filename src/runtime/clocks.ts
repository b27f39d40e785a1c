/** Returns the time by the clock that all threads of a process share and nobody sets, in milliseconds. */
export function monotonicNow(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}

/**
 * Starts a stopwatch.
 *
 * @returns the elapsed milliseconds by the clock of the process that counted more: the monotonic one does not advance
 *   while the machine sleeps, and the other one can be set back
 */
export function startStopwatch(): () => number {
  const [monotonic, wall] = [performance.now(), Date.now()];
  return () => Math.max(performance.now() - monotonic, Date.now() - wall);
}

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
