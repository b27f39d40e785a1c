import { readFileSync } from "node:fs";

/** The unit in which Linux counts the time of processes. */
const TICKS_PER_SECOND = 100;

/** Returns the computing time of a process and its threads, in seconds; Linux only. */
export function computedSeconds(pid: number): number {
  const [user = 0, system = 0] = timesOf(pid);
  return user + system;
}

/**
 * Returns the computing time of a process and of the programs that it has started and that have ended, in seconds; Linux only.
 *
 * @param pid Default: this process.
 */
export function ownSeconds(pid = process.pid): number {
  return timesOf(pid).reduce((sum, time) => sum + time);
}

/** Returns the times of a process in the two modes of the processor, and then those of its children that have ended. */
function timesOf(pid: number): readonly number[] {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return fields.slice(11, 15).map((ticks) => Number(ticks) / TICKS_PER_SECOND);
}
