/** Returns the time by the clock that all threads of a process share and nobody sets, in milliseconds. */
export function monotonicNow(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}
