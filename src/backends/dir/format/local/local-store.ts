import {
  type BigIntStats,
  closeSync,
  createReadStream,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  statSync,
} from "node:fs";
import { access, open, readdir, readFile, stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { type FileFeatures, keyIn, type ObjectInfo, type ObjectStore } from "../storage.ts";
import { type Disk, machineDisk } from "./disk.ts";
import { isMissing, toDiskError } from "./local-errors.ts";
import { createLocalWrites } from "./local-writes.ts";

/**
 * Creates an object store on a local disk.
 *
 * Writers of the Lance engine and writers here exclude each other: both write a temporary file beside the target, named
 * `<target>#<digits>`, and give it its final name through a hard link, which fails if the name is taken (the
 * `object_store` crate's local store with `PutMode::Create`). A crash leaves at most a temporary file, which the engine
 * and this store omit from listings. Unlike the engine, this store syncs its writes (docs/adr/0032).
 *
 * @param root the directory that keys are relative to. Default: `/`, which makes keys equal to the object paths of the
 *   engine and its clients
 * @param disk carries out the changes. Default: the system
 */
export function createLocalStore(
  root = "/",
  disk: Disk = machineDisk,
): ObjectStore & { readonly files: FileFeatures } {
  const prefix = join(root, "x").slice(0, -1);
  const pathOf = (key: string): string => prefix + checkKey(key);
  const directoryOf = (key: string): string => (key === "" ? root : pathOf(key));
  const writes = createLocalWrites(disk, pathOf, directoryOf);
  const store: ObjectStore & { readonly files: FileFeatures } = {
    listsInOrder: false,
    uriOf: (key) => (key === "" ? join(root) : prefix + key),
    keyOf: (uri) => uri.slice(prefix.length),
    get: (key) => orMissing(readFile(pathOf(key))),
    async getTagged(key) {
      // The bytes may be newer than the tag: then the object has changed since, as a change under the tag finds.
      const tag = store.files.fileStamp(key);
      const bytes = tag === undefined ? undefined : await store.get(key);
      return bytes && tag !== undefined ? { bytes, tag } : undefined;
    },
    async getStream(key) {
      const file = await orMissing(open(pathOf(key)));
      return file && createReadStream("", { fd: file });
    },
    getTail: (key, length) =>
      readPart(pathOf(key), (size) => [Math.max(0, size - length), size]).then(
        (part) => part && { size: part.size, bytes: part.bytes },
      ),
    getRange: (key, start, end) =>
      readPart(pathOf(key), (size) => [start, Math.min(end, size)]).then((part) => part?.bytes),
    head: (key) => headOf(key, pathOf(key)),
    async *list(directory) {
      const found = (await orMissing(readdir(directoryOf(directory), { withFileTypes: true }))) ?? [];
      for (let at = 0; at < found.length; at += LISTED_AT_ONCE) {
        yield found
          .slice(at, at + LISTED_AT_ONCE)
          .filter(({ name }) => !TEMPORARY.test(name))
          .map((entry) =>
            entry.isDirectory() ? { name: entry.name, isDirectory: true } : { name: entry.name },
          );
      }
    },
    exists: async (directory) => (await orMissing(access(directoryOf(directory)).then(() => true))) ?? false,
    create: writes.create,
    put: writes.put,
    putHint: writes.putHint,
    putStream: writes.putStream,
    putIfAbsent: writes.putIfAbsent,
    replace: (key, bytes, tag) => writes.replace(key, bytes, () => store.files.fileStamp(key) === tag),
    delete: writes.delete,
    deleteTagged: async (key, tag) => store.files.fileStamp(key) === tag && writes.delete(key),
    deleteAll: writes.deleteAll,
    async copy(from, to) {
      const bytes = await store.getStream(from);
      if (bytes !== undefined) await writes.putStream(to, bytes);
      return bytes !== undefined;
    },
    move: writes.move,
    deleteDirectory: writes.deleteDirectory,
    files: {
      makeDirectory: writes.makeDirectory,
      link: writes.link,
      moveDirectory: writes.moveDirectory,
      syncObjects: writes.syncObjects,
      syncTree: writes.syncTree,
      directoryStamp(directory) {
        const found = statNow(directoryOf(directory));
        return (
          found && {
            identity: (found.birthtimeNs << 64n) | found.ino,
            modifiedNs: found.mtimeNs,
            changedNs: found.ctimeNs,
          }
        );
      },
      namesNow(directory) {
        try {
          return readdirSync(directoryOf(directory)).filter((name) => !TEMPORARY.test(name));
        } catch (error) {
          if (isMissing(error)) return undefined;
          throw toDiskError(error);
        }
      },
      tailNow(key, length) {
        const path = pathOf(key);
        if (statNow(path) === undefined) return undefined;
        const file = openSync(path, "r");
        try {
          const { size } = fstatSync(file);
          const bytes = new Uint8Array(Math.min(size, length));
          const read = readSync(file, bytes, 0, bytes.byteLength, size - bytes.byteLength);
          return { size, bytes: bytes.subarray(0, read) };
        } catch (error) {
          throw toDiskError(error);
        } finally {
          closeSync(file);
        }
      },
      fileStamp(key) {
        const found = statNow(pathOf(key));
        // The time of the last status change is not part of it, because removing a temporary name changes that time.
        return found && `${found.ino}-${found.birthtimeNs}-${found.mtimeNs}-${found.size}`;
      },
      async temporaries(directory) {
        const names = (await orMissing(readdir(directoryOf(directory)))) ?? [];
        const keys = names.filter((name) => TEMPORARY.test(name)).map((name) => keyIn(directory, name));
        const infos = await Promise.all(keys.map((key) => headOf(key, pathOf(key))));
        return infos.filter((info) => info !== undefined);
      },
      async leadsThroughLink(key) {
        const path = pathOf(key);
        return realpathOfExisting(path) !== path;
      },
    },
  };
  return store;
}

/** Length of a page of a listing. The reader may pause between two of them. */
const LISTED_AT_ONCE = 4_096;

/** The engine ignores names of this form; see `is_valid_file_path` in the `object_store` crate. */
const TEMPORARY = /#\d+$/;

/** A part that is empty, `.` or `..`, or a character that paths cannot contain. */
const NO_KEY = /(?:^|\/)\.{0,2}(?:\/|$)|\0/;

function checkKey(key: string): string {
  if (NO_KEY.test(key)) throw new Error(`"${key}" is no object key`);
  return key;
}

/** A synchronous call takes two microseconds, and a call on another thread fifty. */
function statNow(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    throw toDiskError(error);
  }
}

async function orMissing<T>(result: Promise<T>): Promise<T | undefined> {
  return result.catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw toDiskError(error);
  });
}

async function headOf(key: string, path: string): Promise<ObjectInfo | undefined> {
  const found = await orMissing(stat(path, { bigint: true }));
  if (!found?.isFile()) return undefined;
  // Lance 14 gives an equal text: inode, modification time in microseconds, size, in quotes.
  const parts = [found.ino, found.mtimeNs / 1000n, found.size];
  const eTag = `"${parts.map((part) => part.toString(16)).join("-")}"`;
  return { key, size: Number(found.size), modifiedMillis: Number(found.mtimeMs), eTag };
}

async function readPart(
  path: string,
  range: (size: number) => readonly [start: number, end: number],
): Promise<{ readonly size: number; readonly bytes: Uint8Array } | undefined> {
  const file = await orMissing(open(path));
  if (!file) return undefined;
  try {
    const { size } = await file.stat();
    const [start, end] = range(size);
    const bytes = new Uint8Array(Math.max(0, end - start));
    let length = 0;
    while (length < bytes.byteLength) {
      const { bytesRead } = await file.read(bytes, length, bytes.byteLength - length, start + length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return { size, bytes: bytes.subarray(0, length) };
  } finally {
    await file.close();
  }
}

/** Resolves links in the existing part of a path, and keeps the rest. It is as fast as {@link statNow}. */
function realpathOfExisting(path: string): string {
  const parent = resolve(path, "..");
  return realpathNow(path) ?? join(parent === path ? path : realpathOfExisting(parent), basename(path));
}

function realpathNow(path: string): string | undefined {
  // A thrown error costs more than a check beforehand.
  if (statNow(path) === undefined) return undefined;
  try {
    return realpathSync.native(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw toDiskError(error);
  }
}
