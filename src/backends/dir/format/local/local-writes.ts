import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { FileFeatures, ObjectStore } from "../storage.ts";
import type { Disk } from "./disk.ts";
import { createDurableDirectories, syncNamesOf } from "./disk.ts";
import { createFileWrites, createSyncs, temporaryOf } from "./file-writes.ts";
import { hasCode, ifMissing, toDiskError, UnsyncedError } from "./local-errors.ts";

type Writes = Pick<
  ObjectStore,
  | "create"
  | "put"
  | "putHint"
  | "putStream"
  | "putIfAbsent"
  | "delete"
  | "deleteAll"
  | "move"
  | "deleteDirectory"
> & {
  /** Replaces an object if it is still as expected just before; returns false otherwise. */
  replace(key: string, bytes: Uint8Array, isExpected: () => boolean): Promise<boolean>;
} & Pick<FileFeatures, "makeDirectory" | "link" | "moveDirectory" | "syncObjects" | "syncTree">;

/** Failures of a link to a missing file, and those of file systems and users that cannot have one. */
const UNLINKABLE = ["ENOENT", "EXDEV", "EPERM", "EMLINK", "EOPNOTSUPP"];

/** Number of files that are deleted concurrently. */
const DELETIONS = 8;

/**
 * Creates the writes of a local disk. Acknowledged writes survive a loss of power: the bytes of a file are synced
 * before it gets its name, and directories are synced after their names have changed.
 *
 * The directories are opened before anything changes, so a shortage of descriptors has no effect on the disk. A failed
 * sync of names leaves the outcome open; it is never repeated, because the system discards what it could not write and
 * reports success the next time.
 *
 * @param pathOf the path of an object
 * @param directoryOf the path of a directory
 */
export function createLocalWrites(
  disk: Disk,
  pathOf: (key: string) => string,
  directoryOf: (key: string) => string,
): Writes {
  const directories = createDurableDirectories(disk);
  const { into, write, fill, viaTemporary, linkNew } = createFileWrites(disk, directories);
  const { syncBytesOf, syncTree, syncFiles } = createSyncs(disk);

  return {
    create: (key, bytes) =>
      known(async () => {
        const path = pathOf(key);
        const directory = dirname(path);
        const file = await into(path, async () => disk.create(path));
        // The name is in the directory as soon as the file is open.
        const filled = bytes.byteLength > 0 ? fill(file, [bytes]) : disk.close(file);
        const named = syncNamesOf(disk, [directory], () => directories.made(directory));
        try {
          await Promise.all([filled, named]);
        } catch (error) {
          await Promise.allSettled([filled, named]);
          await disk.unlink(path).catch(() => {});
          // The key is private, so no reader sees the object and nothing has happened.
          throw error instanceof UnsyncedError ? error.cause : error;
        }
      }),
    put: (key, bytes) =>
      known(() => {
        const path = pathOf(key);
        return into(path, () => viaTemporary(path, [bytes], (temporary) => disk.rename(temporary, path)));
      }),
    replace: (key, bytes, isExpected) =>
      known(() => {
        const path = pathOf(key);
        return into(path, () =>
          viaTemporary(path, [bytes], async (temporary) => {
            if (isExpected()) return disk.rename(temporary, path).then(() => true);
            await disk.unlink(temporary);
            return false;
          }),
        );
      }),
    putHint: (key, bytes) =>
      known(async () => {
        const path = pathOf(key);
        const temporary = temporaryOf(path);
        const file = await into(path, async () => disk.create(temporary), directories.makeLoose);
        try {
          await write(file, [bytes]).finally(() => disk.close(file));
          await disk.rename(temporary, path);
        } catch (error) {
          await disk.unlink(temporary).catch(() => {});
          throw error;
        }
      }),
    putStream: (key, bytes, signal) =>
      known(() => {
        const path = pathOf(key);
        return viaTemporary(path, untilAborted(bytes, signal), (temporary) => disk.rename(temporary, path));
      }),
    putIfAbsent(key, bytes, after) {
      after?.catch(() => {});
      return known(() => {
        const path = pathOf(key);
        const write = () => viaTemporary(path, [bytes], (temporary) => linkNew(temporary, path), after);
        return into(path, write);
      });
    },
    delete: (key) =>
      known(async () => {
        const path = pathOf(key);
        return orFalse(["ENOENT", "ENOTDIR"], () =>
          syncNamesOf(disk, [dirname(path)], () => orFalse(["ENOENT"], () => disk.unlink(path))),
        );
      }),
    deleteAll: (keys) =>
      known(async () => {
        for (const [directory, paths] of Map.groupBy(keys.map(pathOf), (path) => dirname(path))) {
          const unlink = (path: string) => disk.unlink(path).catch(ifMissing(undefined));
          const unlinkAll = () => forEachOf(paths, DELETIONS, unlink);
          await syncNamesOf(disk, [directory], unlinkAll).catch(ifMissing(undefined));
        }
      }),
    move: (from, to) =>
      known(async () => {
        const [source, target] = [pathOf(from), pathOf(to)];
        // It is as young as after a move in a bucket, because nothing may refer to the object yet. The file of another user keeps its time.
        await disk.touch(source).catch(() => {});
        await syncBytesOf(source);
        const rename = () =>
          syncNamesOf(disk, [dirname(source), dirname(target)], async () => {
            await directories.made(dirname(target));
            await disk.rename(source, target);
          });
        // If the object's own directory is gone, a new one would not bring it back.
        await (dirname(source) === dirname(target) ? rename() : into(target, rename));
      }),
    link: (from, to) =>
      known(() => {
        const path = pathOf(to);
        return orFalse(UNLINKABLE, () => into(path, async () => disk.link(pathOf(from), path)));
      }),
    moveDirectory: (from, to) =>
      known(async () => {
        const [source, target] = [pathOf(from), pathOf(to)];
        return orFalse(["ENOENT"], () =>
          syncNamesOf(disk, [dirname(source), dirname(target)], () =>
            orFalse(["ENOENT", "ENOTEMPTY", "EEXIST"], () => disk.rename(source, target)),
          ),
        );
      }),
    deleteDirectory: (directory, { last, isFormer, owns = () => true } = {}) =>
      known(async () => {
        const path = pathOf(directory);
        if (isFormer !== undefined && !(await isFormer())) return false;
        if (last !== undefined) {
          await removeOwn(disk, path, (name) => name !== last && owns(name));
          await syncNamesOf(disk, [path], async () => {}).catch(ifMissing(undefined));
        }
        await removeOwn(disk, path, owns);
        return true;
      }),
    makeDirectory: (directory) =>
      known(async () => {
        directories.make(directoryOf(directory));
        await directories.made(directoryOf(directory));
      }),
    syncObjects: (keys, within) => known(() => syncFiles(keys.map(pathOf), directoryOf(within))),
    syncTree: (directory) => known(() => syncTree(directoryOf(directory))),
  };
}

/**
 * Removes files from a directory, and then those directories that they leave empty.
 *
 * @param owns whether something is removed, by its path relative to the top; an empty directory ends in a slash
 * @param within the directory relative to the top, with a slash. Default: the top
 * @returns whether the directory is gone
 */
async function removeOwn(
  disk: Disk,
  path: string,
  owns: (path: string) => boolean,
  within = "",
): Promise<boolean> {
  const entries = await readdir(path, { withFileTypes: true }).catch(ifMissing([]));
  let left = entries.length === 0 && !owns(within) ? 1 : 0;
  await forEachOf(entries, DELETIONS, async (entry) => {
    const own = `${within}${entry.name}`;
    const target = join(path, entry.name);
    if (entry.isDirectory()) left += (await removeOwn(disk, target, owns, `${own}/`)) ? 0 : 1;
    else if (owns(own)) await disk.unlink(target).catch(ifMissing(undefined));
    else left += 1;
  });
  return left === 0 && orFalse(["ENOTEMPTY"], () => disk.rmdir(path).catch(ifMissing(undefined)));
}

/** Yields the chunks of a source until a signal fires. */
async function* untilAborted(
  source: AsyncIterable<Uint8Array>,
  signal?: AbortSignal,
): AsyncIterable<Uint8Array> {
  for await (const chunk of source) {
    signal?.throwIfAborted();
    yield chunk;
  }
  signal?.throwIfAborted();
}

/** Runs work; returns false if the work returns false or fails with an expected code, and true otherwise. */
async function orFalse(codes: readonly string[], work: () => Promise<unknown>): Promise<boolean> {
  try {
    return (await work()) !== false;
  } catch (error) {
    if (codes.some((code) => hasCode(error, code))) return false;
    throw error;
  }
}

async function known<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toDiskError(error);
  }
}
