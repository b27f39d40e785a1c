import { dirname } from "node:path";
import type { Disk } from "./disk.ts";
import { hasCode, UnsyncedError } from "./local-errors.ts";

/** Makes directories whose own names are on the disk before anything in them counts. */
export interface DurableDirectories {
  /** Makes a directory with those above it; their names are on the disk when {@link made} has ended. */
  make(path: string): void;
  /** Makes a directory with those above it, whose names a loss of power may take. */
  makeLoose(path: string): void;
  /** Waits for the name of a directory that was made here. */
  made(path: string): Promise<void>;
}

export function createDurableDirectories(disk: Disk): DurableDirectories {
  const pending = new Map<string, Promise<unknown>>();

  function sync(path: string): Promise<unknown> {
    const above = pending.get(dirname(path));
    const named = Promise.all([above, syncNamesOf(disk, [dirname(path)], async () => {})]);
    const forget = () => {
      if (pending.get(path) === named) pending.delete(path);
    };
    pending.set(path, named);
    // Any other failure stays, so that a caller that finds the directory does not take its name for synced.
    named.then(forget, (error: unknown) => {
      if (hasCode(error, "ENOENT")) forget();
    });
    return named;
  }
  // Where a directory is there in which none can be made, as in /proc, the system says that something is missing.
  function make(path: string, onMade: (path: string) => void, attempts = 3): void {
    try {
      disk.mkdir(path);
    } catch (error) {
      if (hasCode(error, "EEXIST")) return;
      if (!hasCode(error, "ENOENT") || dirname(path) === path || attempts === 1) throw error;
      make(dirname(path), onMade);
      make(path, onMade, attempts - 1);
      return;
    }
    onMade(path);
  }
  return {
    // Whoever needs the name on the disk waits for it with made().
    make: (path) => make(path, (each) => void sync(each)),
    makeLoose: (path) => make(path, () => {}),
    async made(path) {
      try {
        await pending.get(path);
      } catch (error) {
        // Nothing in the directory has a name yet. Only what failed before its sync may be tried again.
        if (error instanceof UnsyncedError) throw error.cause;
        await sync(path);
      }
    },
  };
}

/**
 * Changes names in directories and waits until they are on the disk.
 *
 * The directories are opened first, so that nothing changes when there are no descriptors left.
 *
 * @throws UnsyncedError after a change that readers see, and that a loss of power may undo
 */
export async function syncNamesOf<T>(
  disk: Disk,
  paths: readonly string[],
  change: () => Promise<T>,
): Promise<T> {
  const directories: number[] = [];
  try {
    for (const path of new Set(paths)) directories.push(disk.open(path));
    const result = await change();
    const synced = await Promise.allSettled(directories.map((directory) => disk.syncNames(directory)));
    const failed = synced.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw new UnsyncedError(failed.reason);
    return result;
  } finally {
    for (const directory of directories) disk.close(directory);
  }
}
