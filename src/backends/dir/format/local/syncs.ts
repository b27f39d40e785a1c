import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { Disk } from "./disk.ts";
import { syncNamesOf } from "./durable-directories.ts";
import { ifMissing, UnsyncedError } from "./local-errors.ts";

/** Makes durable what other processes wrote. */
export interface Syncs {
  /**
   * Syncs a file.
   *
   * @throws UnsyncedError, because the writer may have acknowledged the file already
   */
  syncBytesOf(path: string): Promise<void>;
  /** Syncs a directory with everything in it; does nothing for one that does not exist. */
  syncTree(path: string): Promise<void>;
  /** Syncs files and the directories that lead to them from another one; skips those that have been removed meanwhile. */
  syncFiles(paths: readonly string[], within: string): Promise<void>;
}

/** Number of files of a tree that are synced concurrently. */
const SYNCS = 8;

/** Creates the syncs of a disk. */
export function createSyncs(disk: Disk): Syncs {
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
    const directories = new Set([within]);
    for (const path of paths)
      for (let up = dirname(path); up.startsWith(`${within}/`); up = dirname(up)) directories.add(up);
    await syncAll(paths, directories);
  }

  return { syncBytesOf, syncTree, syncFiles };
}
