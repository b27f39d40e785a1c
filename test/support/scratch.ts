import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** File system in memory of Linux systems; in some containers it is very small. */
const MEMORY = "/dev/shm";
/** Free space that a run needs, in bytes, with a wide margin. */
const ROOM_BYTES = 1024 ** 3;

/**
 * Returns the directory for the temporary files of tests that are not about disks: `TMPDIR` if it is set, a new
 * directory in memory if the system has room for one, or the system's own.
 */
export function scratchDirectory(): string {
  if (process.env["TMPDIR"] !== undefined || !hasRoom(MEMORY)) return tmpdir();
  const directory = mkdtempSync(join(MEMORY, "lance-gateway-tests-"));
  // The engine leaves temporary files behind when a process ends.
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function hasRoom(directory: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
}
