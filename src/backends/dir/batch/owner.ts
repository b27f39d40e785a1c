import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";

/** Which process a note is of. */
export interface Owner {
  /** A name of the process's own, drawn when it starts. */
  readonly process: string;
  readonly pid: number;
  /** The boot of the machine, and the kernel's namespaces that give numbers and times of processes their meaning. */
  readonly kernel: string | null;
  /** When the process started, in the kernel's ticks, which tells it from a later one with its number. */
  readonly started: string | null;
}

/** Identifies the running process; where the kernel does not say enough, others can only wait for its silence. */
export function identifyProcess(): Owner {
  return {
    process: randomUUID(),
    pid: process.pid,
    kernel: kernelOf(),
    started: startOf("self", process.pid),
  };
}

/**
 * Whether a process has ended for certain. Host names and process numbers do not tell: containers share both. So
 * the boot and the namespaces have to be this process's own, and the number free or taken by a later process.
 */
export function hasEnded({ pid, kernel, started }: Owner): boolean {
  if (kernel === null || started === null || kernel !== kernelOf()) return false;
  if (!isRunning(pid)) return true;
  const now = startOf(pid, pid);
  return now !== null && now !== started;
}

function kernelOf(): string | null {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const namespaces = ["pid", "time"].map((kind) => readlinkSync(`/proc/self/ns/${kind}`));
    return [boot, ...namespaces].join(" ");
  } catch {
    return null;
  }
}

/**
 * When a process started; null if `/proc` does not say, or speaks of the processes of another namespace. It is the
 * 22nd field of a line whose second one, the name, may have blanks and parentheses.
 */
function startOf(entry: "self" | number, pid: number): string | null {
  try {
    const line = readFileSync(`/proc/${entry}/stat`, "latin1");
    if (!line.startsWith(`${pid} `)) return null;
    return line.slice(line.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
