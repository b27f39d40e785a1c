import { randomInt } from "node:crypto";
import {
  closeSync,
  fdatasync,
  fsync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  unlinkSync,
  write,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { toDiskError } from "./local-errors.ts";

/** Writes of a local disk that survive a loss of power once they have finished: the bytes and the names. */
export interface DurableWrites {
  /** Writes an object whose key nobody else uses; a crash may leave a part of it. */
  create(key: string, bytes: Uint8Array): Promise<void>;
  /**
   * Writes an object whole, unless one is there.
   *
   * @param after what has to be done before the object gets its name; its failure is that of the write
   * @returns false if one was there; it is untouched
   */
  putIfAbsent(key: string, bytes: Uint8Array, after: Promise<unknown>): Promise<boolean>;
}

/*
 * A commit waits for these writes one after the other, so what takes microseconds is done at once, and only what
 * waits for the disk is handed to other threads.
 */
const sync = promisify(fdatasync);
const syncNames = promisify(fsync);
const writeAll = promisify(write);

/** Bytes that are written at once; more are handed to another thread. */
const SMALL = 256 * 1024;

/**
 * Creates the durable writes of a local disk; they exclude other writers as its other writes do.
 *
 * @param pathOf the path of a key
 */
export function createDurableWrites(pathOf: (key: string) => string): DurableWrites {
  return {
    async create(key, bytes) {
      const path = pathOf(key);
      await known(async () => {
        const file = openNew(path);
        // The name is in the directory as soon as the file is open.
        await Promise.all([fill(file, bytes), syncDirectory(dirname(path))]);
      });
    },
    async putIfAbsent(key, bytes, after) {
      const path = pathOf(key);
      const temporary = `${path}#${randomInt(2 ** 47)}`;
      const written = known(() => fill(openNew(temporary), bytes));
      try {
        await Promise.all([written, after]);
        return await known(async () => {
          if (!linkNew(temporary, path)) return false;
          await syncDirectory(dirname(path));
          return true;
        });
      } finally {
        await written.catch(() => {});
        remove(temporary);
      }
    },
  };
}

/** Writes a new file to the disk and closes it. */
async function fill(file: number, bytes: Uint8Array): Promise<void> {
  try {
    for (let at = 0; at < bytes.byteLength; ) {
      const rest = bytes.subarray(at);
      at += rest.byteLength <= SMALL ? writeSync(file, rest) : (await writeAll(file, rest)).bytesWritten;
    }
    await sync(file);
  } finally {
    closeSync(file);
  }
}

/** Opens a new file; makes the directory when it is missing. */
function openNew(path: string): number {
  try {
    return openSync(path, "wx");
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
    const directory = dirname(path);
    const first = mkdirSync(directory, { recursive: true });
    if (first !== undefined) syncNamesAtOnce(dirname(first));
    return openSync(path, "wx");
  }
}

/** Writes the names of a directory to the disk, for the rare new directory in it. */
function syncNamesAtOnce(path: string): void {
  const directory = openSync(path, "r");
  fsyncSync(directory);
  closeSync(directory);
}

function linkNew(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // A temporary file that stays is left out of listings.
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = openSync(path, "r");
  try {
    await syncNames(directory);
  } finally {
    closeSync(directory);
  }
}

async function known<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toDiskError(error);
  }
}

function hasCode(error: unknown, code: string): boolean {
  return (error as NodeJS.ErrnoException).code === code;
}
