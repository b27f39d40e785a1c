import { mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** File system in memory of Linux systems; in some containers it is very small. */
const MEMORY = "/dev/shm";
const GIB = 1024 ** 3;

/** Needs of tests for a directory for temporary files. */
export interface ScratchUse {
  /** Free space that a run needs, in bytes, with a wide margin. Default: 1 GiB. */
  readonly bytes?: number;
  /** Whether it runs programs that it has put there. Default: false. */
  readonly runsPrograms?: boolean;
}

/** Needs of client sessions, which install packages and build programs. */
export const SESSIONS: ScratchUse = { bytes: 6 * GIB, runsPrograms: true };

/**
 * Returns the directory for the temporary files of tests that are not about disks: `TMPDIR` if it is set, a new
 * directory in memory if the system has room for one, or the system's own.
 */
export function scratchDirectory({ bytes = GIB, runsPrograms = false }: ScratchUse = {}): string {
  const isFit = () => hasRoom(MEMORY, bytes) && !(runsPrograms && refusesPrograms(MEMORY));
  if (process.env["TMPDIR"] !== undefined || !isFit()) return tmpdir();
  const directory = mkdtempSync(join(MEMORY, "lance-gateway-tests-"));
  // The engine leaves temporary files behind when a process ends.
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function hasRoom(directory: string, bytes: number): boolean {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize >= bytes;
  } catch {
    return false;
  }
}

/** Whether a file system is mounted with `noexec`, as containers mount theirs in memory. */
function refusesPrograms(mount: string): boolean {
  const lines = readFileSync("/proc/mounts", "utf8").split("\n");
  const options = lines.map((line) => line.split(" ")).findLast(([, path]) => path === mount)?.[3];
  return options === undefined || options.split(",").includes("noexec");
}
