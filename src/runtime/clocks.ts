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

const AGE = /^(\d+) ?(s|m|h|d)$/;
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses an age such as `90m`, `12h` or `7d`; returns milliseconds, or undefined for any other text. */
export function parseAge(text: string): number | undefined {
  const [, digits, unit = ""] = AGE.exec(text) ?? [];
  const age = Number(digits) * (UNITS[unit] ?? Number.NaN);
  return Number.isSafeInteger(age) ? age : undefined;
}
