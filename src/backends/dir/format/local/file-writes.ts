import { randomInt } from "node:crypto";
import { dirname } from "node:path";
import type { Disk } from "./disk.ts";
import { type DurableDirectories, syncNamesOf } from "./durable-directories.ts";
import { hasCode } from "./local-errors.ts";

/** Content of a file. */
export type Chunks = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/** Steps of which the writes of files consist. */
export interface FileWrites {
  /**
   * Runs work that needs the directory of a path, and creates the directory if it is missing.
   *
   * @param make creates it. Default: in a way that makes its name durable
   */
  into<T>(path: string, work: () => Promise<T>, make?: (path: string) => void): Promise<T>;
  /** Writes chunks to an open file. */
  write(file: number, chunks: Chunks): Promise<void>;
  /** Writes chunks to an open file, syncs it and closes it. */
  fill(file: number, chunks: Chunks): Promise<void>;
  /**
   * Writes a temporary file beside the target and lets `publish` give it its name.
   *
   * @param after what the name waits for, too. Default: nothing
   */
  viaTemporary<T>(
    path: string,
    chunks: Chunks,
    publish: (temporary: string) => Promise<T>,
    after?: Promise<unknown>,
  ): Promise<T>;
  /** Gives a temporary file its name and removes it as a temporary one; returns false if the name is taken. */
  linkNew(temporary: string, path: string): Promise<boolean>;
}

/** How often others may remove a directory while a file is being added to it. */
const MAX_ATTEMPTS = 30;

/** Creates the steps for a disk. */
export function createFileWrites(disk: Disk, directories: DurableDirectories): FileWrites {
  async function into<T>(path: string, work: () => Promise<T>, make = directories.make): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (!hasCode(error, "ENOENT") || attempt === MAX_ATTEMPTS) throw error;
      }
      make(dirname(path));
    }
  }
  async function write(file: number, chunks: Chunks): Promise<void> {
    for await (const chunk of chunks)
      for (let at = 0; at < chunk.byteLength; ) at += await disk.write(file, chunk.subarray(at));
  }
  async function fill(file: number, chunks: Chunks): Promise<void> {
    try {
      await write(file, chunks);
      await disk.syncBytes(file);
    } finally {
      disk.close(file);
    }
  }
  async function viaTemporary<T>(
    path: string,
    chunks: Chunks,
    publish: (temporary: string) => Promise<T>,
    after?: Promise<unknown>,
  ): Promise<T> {
    const directory = dirname(path);
    const temporary = temporaryOf(path);
    const file = await into(path, async () => disk.create(temporary));
    try {
      const filled = fill(file, chunks);
      await Promise.all([filled, after, directories.made(directory)]).finally(() => filled.catch(() => {}));
      return await syncNamesOf(disk, [directory], () => publish(temporary));
    } catch (error) {
      await disk.unlink(temporary).catch(() => {});
      throw error;
    }
  }
  async function linkNew(temporary: string, path: string): Promise<boolean> {
    try {
      disk.link(temporary, path);
      return true;
    } catch (error) {
      if (hasCode(error, "EEXIST")) return false;
      throw error;
    } finally {
      await disk.unlink(temporary).catch(() => {});
    }
  }

  return { into, write, fill, viaTemporary, linkNew };
}

/** Returns a name beside a path that listings omit. */
export function temporaryOf(path: string): string {
  return `${path}#${randomInt(2 ** 47)}`;
}
