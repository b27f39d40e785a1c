import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { holdThreadLock, isThreadLockHeld } from "../concurrency/thread-locks.ts";
import { keyIn, listNames, type ObjectStore } from "../format/storage.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import { createSilence, keepRenewing, type LeaseTimes, type Renewal } from "./renewal.ts";

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

/**
 * Notes of owners in a directory, a file each. A note is written once and removed once, so the signs of its owner have a file of their own:
 * a late sign must not bring the note back.
 */
export interface Notes {
  /** Returns the key of a note. */
  keyOf(id: string): string;
  /** Returns the ids of all notes. */
  ids(): Promise<string[]>;
  /** Gives signs for a note of this process, until they are stopped. */
  renew(id: string, times: LeaseTimes, acquiredAt: number): Renewal;
  /** Removes the signs of a note. */
  removeSigns(id: string): Promise<void>;
  /** Returns the keys of signs without a note. */
  strays(): Promise<string[]>;
  /**
   * Whether the owner of a note is certainly not at work any longer, or has been silent for too long. False if the note has been removed
   * meanwhile.
   *
   * @param isAtWork whether the work goes on, if the owner is this process
   * @param silentMs the longest silence, by the storage's clock
   */
  isLeft(id: string, owner: Owner, isAtWork: boolean, silentMs: number): Promise<boolean>;
}

const SIGN = ".alive";

/**
 * Opens the notes of a directory, given by its key.
 *
 * @param ending the ending of the names of notes. Default: none
 */
export function createNotes(directory: string, store: ObjectStore, clock: StorageClock, ending = ""): Notes {
  const silence = createSilence(clock);
  const keyOf = (id: string) => keyIn(directory, id + ending);
  const signOf = (id: string) => keyIn(directory, id + SIGN);

  async function idsOf(kind: string): Promise<string[]> {
    const names = (await listNames(store, directory)).filter((name) => name.endsWith(kind));
    return names.map((name) => name.slice(0, name.length - kind.length));
  }
  const ids = async () => (await idsOf(ending)).filter((id) => !id.endsWith(SIGN));
  /** Returns the time of the last sign, in milliseconds since 1970 by the storage's clock; undefined without a note. */
  async function lastSeen(id: string): Promise<number | undefined> {
    const [note, sign] = await Promise.all([keyOf(id), signOf(id)].map((key) => store.head(key)));
    return note && Math.max(note.modifiedMillis, sign?.modifiedMillis ?? 0);
  }
  return {
    keyOf,
    ids,
    // A loss of power that takes a sign ends its owner, too.
    renew: (id, times, acquiredAt) =>
      keepRenewing(() => store.putHint(signOf(id), Buffer.from("")), times, acquiredAt),
    removeSigns: async (id) => void (await store.delete(signOf(id))),
    async strays() {
      const known = new Set(await ids());
      return (await idsOf(SIGN)).filter((id) => !known.has(id)).map(signOf);
    },
    async isLeft(id, owner, isAtWork, silentMs) {
      if (await hasLeft(owner, isAtWork)) return true;
      if (owner.process === THIS_PROCESS.process) return false;
      const seen = await lastSeen(id);
      return seen !== undefined && silence.isLonger(id, seen, silentMs);
    },
  };
}
