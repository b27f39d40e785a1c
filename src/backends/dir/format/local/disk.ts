import {
  closeSync,
  fdatasync,
  fsync,
  linkSync,
  mkdirSync,
  openSync,
  rename,
  rmdir,
  unlink,
  utimes,
  write,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { hasCode, UnsyncedError } from "./local-errors.ts";

/**
 * The system calls that change a disk, and those that open files. All writes of this project to a disk go through them,
 * so that a test can count, refuse, record and lose them.
 *
 * Calls that take microseconds are synchronous, because a commit makes them one after the other; calls that wait for
 * the disk run on other threads.
 */
export interface Disk {
  /** Opens a file, or a directory, for reading. */
  open(path: string): number;
  /** Opens a new file; fails if it exists. */
  create(path: string): number;
  /** Appends to what was written before; returns how many bytes it took. */
  write(file: number, bytes: Uint8Array): number | Promise<number>;
  /** Waits until the bytes of a file are on the disk. */
  syncBytes(file: number): Promise<void>;
  /** Waits until the names in a directory are on the disk. */
  syncNames(directory: number): Promise<void>;
  close(file: number): void;
  /** Gives a file a further name, which must be free. */
  link(from: string, to: string): void;
  /** Renames a file or a directory; a file replaces an existing one of that name. */
  rename(from: string, to: string): Promise<void>;
  /** Gives a file the time of now, as if it had been written. */
  touch(path: string): Promise<void>;
  unlink(path: string): Promise<void>;
  mkdir(path: string): void;
  rmdir(path: string): Promise<void>;
}

/** Maximum number of bytes that are written synchronously; larger writes run on another thread. */
const SMALL = 256 * 1024;

const writeAsync = promisify(write);
const setTimes = promisify(utimes);

/** The disks of this machine. */
export const machineDisk: Disk = {
  open: (path) => openSync(path, "r"),
  create: (path) => openSync(path, "wx"),
  write: (file, bytes) =>
    bytes.byteLength <= SMALL
      ? writeSync(file, bytes)
      : writeAsync(file, bytes).then(({ bytesWritten }) => bytesWritten),
  syncBytes: promisify(fdatasync),
  syncNames: promisify(fsync),
  close: closeSync,
  link: linkSync,
  rename: promisify(rename),
  touch: (path) => setTimes(path, new Date(), new Date()),
  unlink: promisify(unlink),
  mkdir: (path) => mkdirSync(path),
  rmdir: promisify<string, void>(rmdir),
};

/** Creates directories, and makes their own names durable before anything in them counts. */
export interface DurableDirectories {
  /** Creates a directory and its parents; their names are on the disk when {@link made} has finished. */
  make(path: string): void;
  /** Creates a directory and its parents; a loss of power may remove their names. */
  makeLoose(path: string): void;
  /** Waits until the name of a directory that was created here is on the disk. */
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
    // Any other failure is kept, so that a caller that finds the directory does not assume that its name is synced.
    named.then(forget, (error: unknown) => {
      if (hasCode(error, "ENOENT")) forget();
    });
    return named;
  }
  // In an existing directory that does not allow subdirectories, such as /proc, the system reports a missing path.
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
    // A caller that needs the name on the disk waits for it with made().
    make: (path) => make(path, (each) => void sync(each)),
    makeLoose: (path) => make(path, () => {}),
    async made(path) {
      try {
        await pending.get(path);
      } catch (error) {
        // No file in the directory has its name yet. Only a failure from before the sync may be retried.
        if (error instanceof UnsyncedError) throw error.cause;
        await sync(path);
      }
    },
  };
}

/**
 * Changes names in directories and waits until they are on the disk.
 *
 * It opens the directories first, so that nothing changes if it runs out of descriptors.
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
