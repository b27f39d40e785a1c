import type { DirectoryStamp } from "./storage.ts";

/**
 * How old the last change of a directory has to be for the next one to get another time, in milliseconds. Linux
 * gives times in ticks of up to 10 ms, and other systems know 100 ns to 10 ms.
 */
const TICK_MS = 100;

/** The same where the time is a whole second: there are file systems that know only every second one. */
const COARSE_TICK_MS = 2100;

/** Whether two stamps are of one directory, and nothing came into it or left it between them, if they were settled. */
export function isSame(a: DirectoryStamp, b: DirectoryStamp | undefined): boolean {
  return a.identity === b?.identity && a.modifiedNs === b.modifiedNs && a.changedNs === b.changedNs;
}

/**
 * Whether the next change of a directory gives it another stamp.
 *
 * @param now a time before the stamp was taken, in milliseconds since 1970
 */
export function isSettled({ modifiedNs, changedNs }: DirectoryStamp, now: number): boolean {
  const tick = modifiedNs % 1_000_000_000n === 0n ? COARSE_TICK_MS : TICK_MS;
  return now - Number((modifiedNs > changedNs ? modifiedNs : changedNs) / 1_000_000n) > tick;
}
