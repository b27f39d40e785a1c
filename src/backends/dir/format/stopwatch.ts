/**
 * Starts a stopwatch.
 *
 * @returns the milliseconds since then by the clock of the process that counted more: the monotonic one stands still
 *   while the machine sleeps, and the other one can be set back
 */
export function startStopwatch(): () => number {
  const [monotonic, wall] = [performance.now(), Date.now()];
  return () => Math.max(performance.now() - monotonic, Date.now() - wall);
}
