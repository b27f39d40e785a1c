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
