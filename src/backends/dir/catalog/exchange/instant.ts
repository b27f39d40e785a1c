/** A time by both clocks, which all threads of a process share. In milliseconds. */
export interface Instant {
  readonly wall: number;
  readonly monotonic: number;
}

export function now(): Instant {
  return { wall: Date.now(), monotonic: Number(process.hrtime.bigint() / 1_000_000n) };
}

/**
 * Returns the milliseconds since an instant by the clock that counted more: the monotonic one does not advance while the
 * machine sleeps, and the other one can be set back.
 */
export function ageOf({ wall, monotonic }: Instant): number {
  const { wall: wallNow, monotonic: monotonicNow } = now();
  return Math.max(wallNow - wall, monotonicNow - monotonic);
}
