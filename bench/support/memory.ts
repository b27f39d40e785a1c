import { readFileSync } from "node:fs";

/** Measures the memory of a process. */
export interface MemoryWatch {
  /** Ends the measurement; returns the growth of the resident memory since the start, in bytes. */
  end(): number;
  /** Ends the measurement; returns the maximum of the resident memory, in bytes. */
  peak(): number;
}

const EVERY_MS = 20;
const PAGE_BYTES = 4096;

/** Starts to sample the resident memory of a process; Linux only. */
export function watchMemory(pid: number): MemoryWatch {
  const before = residentBytes(pid);
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, residentBytes(pid));
  }, EVERY_MS);
  const end = () => {
    clearInterval(timer);
    return Math.max(peak, residentBytes(pid));
  };
  return { end: () => end() - before, peak: end };
}

/** Returns the resident memory of a process now, in bytes; 0 once it has ended. */
export function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}
