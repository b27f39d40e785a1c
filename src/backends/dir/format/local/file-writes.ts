import { randomInt } from "node:crypto";
import { type Dirent, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { Disk } from "./disk.ts";
import { type DurableDirectories, syncNamesOf } from "./disk.ts";
import { hasCode, ifMissing, UnsyncedError } from "./local-errors.ts";

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

/** Makes durable what other processes wrote. */
interface Syncs {
  /**
   * Syncs a file.
   *
   * @throws UnsyncedError, because the writer may have acknowledged the file already
   */
  syncBytesOf(path: string): Promise<void>;
  /** Syncs a directory with everything in it; does nothing for one that does not exist. */
  syncTree(path: string): Promise<void>;
  /**
   * Syncs files and the directories that lead to them from another one; skips those that have been removed meanwhile. Of directories that
   * led to files before, only those directly above the files are synced again: the names of the others are on the disk.
   */
  syncFiles(paths: readonly string[], within: string): Promise<void>;
}

/** Number of files of a tree that are synced concurrently. */
const SYNCS = 8;

/** Maximum number of directories that are remembered. */
const MAX_NAMED = 10_000;

/** Creates the syncs of a disk. */
export function createSyncs(disk: Disk): Syncs {
  /** Identities of directories whose names, and those of the directories above them up to a top, were synced; by top and path. */
  const named = new Map<string, string>();

  async function syncBytesOf(path: string): Promise<void> {
    const file = disk.open(path);
    try {
      await disk.syncBytes(file);
    } catch (error) {
      throw new UnsyncedError(error);
    } finally {
      disk.close(file);
    }
  }
  /** Syncs files and directories; skips those that have been removed meanwhile. */
  async function syncAll(files: Iterable<string>, names: Iterable<string>): Promise<void> {
    const syncs = [
      ...[...files].map((path) => () => syncBytesOf(path)),
      ...[...names].map((path) => () => syncNamesOf(disk, [path], async () => {})),
    ];
    await forEachOf(syncs, SYNCS, (sync) => sync().catch(ifMissing(undefined)));
  }
  async function syncTree(path: string): Promise<void> {
    const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch(ifMissing([]));
    const pathOfEntry = (entry: Dirent) => join(entry.parentPath, entry.name);
    const files = entries.filter((entry) => entry.isFile()).map(pathOfEntry);
    const directories = entries.filter((entry) => entry.isDirectory()).map(pathOfEntry);
    await syncAll(files, [path, ...directories]);
  }
  async function syncFiles(paths: readonly string[], within: string): Promise<void> {
    const directories = new Set(paths.length === 0 ? [within] : []);
    const fresh = new Map<string, string>();
    for (const owner of new Set(paths.map((path) => dirname(path)))) {
      directories.add(owner);
      const above: string[] = [];
      for (let up = dirname(owner); up.startsWith(`${within}/`); up = dirname(up)) above.push(up);
      above.push(within);
      // A directory that was moved below a new one has its own identity still.
      const identity = identityOf([owner, ...above]);
      const name = `${within}\0${owner}`;
      if (identity !== undefined && named.get(name) === identity) continue;
      if (identity !== undefined) fresh.set(name, identity);
      for (const each of above) directories.add(each);
    }
    await syncAll(paths, directories);
    for (const [name, identity] of fresh) {
      if (named.size === MAX_NAMED) named.clear();
      named.set(name, identity);
    }
  }

  return { syncBytesOf, syncTree, syncFiles };
}

/** Distinguishes directories, each in the next one, from others that take their places; undefined if one is missing. */
function identityOf(directories: readonly string[]): string | undefined {
  const identities: string[] = [];
  for (const directory of directories) {
    const found = statSync(directory, { bigint: true, throwIfNoEntry: false });
    if (found === undefined) return undefined;
    identities.push(`${found.ino}-${found.birthtimeNs}`);
  }
  return identities.join(" ");
}
