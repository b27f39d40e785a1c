import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { holdThreadLock, isThreadLockHeld } from "../concurrency/thread-locks.ts";

/** Process that owns a note. A worker counts as a process of its own. */
export interface Owner {
  /** Random name that the process draws at its start, and each worker, too. */
  readonly process: string;
  readonly pid: number;
  /** Boot of the machine, and the kernel's namespaces that define numbers and times of processes. */
  readonly kernel: string | null;
  /** Start of the process, in the kernel's ticks, which distinguishes it from a later process with its number. */
  readonly started: string | null;
}

/**
 * Identifies the running process or worker. If the kernel reveals too little, others can only wait for its silence.
 *
 * It holds a lock by the name until it ends, because a worker may end while its process goes on.
 */
export function identifyProcess(): Owner {
  const name = randomUUID();
  holdThreadLock(lockOf(name));
  return {
    process: name,
    pid: process.pid,
    kernel: kernelOf(),
    started: startOf("self", process.pid),
  };
}

/**
 * Whether a process has certainly ended. Host names and process numbers prove nothing, because containers share both.
 * So the boot and the namespaces must be this process's own, and the number free or taken by a later process; or it is
 * a worker of this process that is gone.
 */
export async function hasEnded({ process: name, pid, kernel, started }: Owner): Promise<boolean> {
  if (kernel === null || started === null || kernel !== kernelOf()) return false;
  if (!isRunning(pid)) return true;
  const now = startOf(pid, pid);
  if (now === null) return false;
  return now !== started || (pid === process.pid && !(await isThreadLockHeld(lockOf(name))));
}

/**
 * Whether an owner is certainly not at work on something any longer.
 *
 * @param isAtWork whether the work goes on, if the owner is this process
 */
export async function hasLeft(owner: Owner, isAtWork: boolean): Promise<boolean> {
  return owner.process === THIS_PROCESS.process ? !isAtWork : hasEnded(owner);
}

const lockOf = (name: string) => `owner ${name}`;

/** The running process. */
export const THIS_PROCESS = identifyProcess();

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
 * Returns the start of a process; null if `/proc` does not reveal it, or describes another namespace. It is the 22nd
 * field of a line whose second field, the name, may contain blanks and parentheses.
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
