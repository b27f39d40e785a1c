import { readFileSync } from "node:fs";

/** The unit in which Linux counts the time of processes. */
const TICKS_PER_SECOND = 100;

/** Returns the computing time of a process and its threads, in seconds; Linux only. */
export function computedSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
