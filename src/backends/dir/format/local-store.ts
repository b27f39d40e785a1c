import { randomInt } from "node:crypto";
import { type BigIntStats, createReadStream, realpathSync, statSync } from "node:fs";
import {
  access,
  type FileHandle,
  link,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  unlink,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { createDurableWrites } from "./durable-writes.ts";
import { toDiskError } from "./local-errors.ts";
import { type FileFeatures, keyIn, type ObjectInfo, type ObjectStore } from "./storage.ts";

/**
 * A local disk as an object store.
 *
 * Writers of the Lance engine and writers here exclude each other: both write a temporary file beside the
 * target, named `<target>#<digits>`, and give it its final name by a hard link, which fails if the name is
 * taken (the `object_store` crate's local store with `PutMode::Create`). A crash leaves at most such a
 * temporary file, which the engine and this store leave out of listings. As in the engine, files are not
 * synced, so a write survives the end of the process but perhaps not a loss of power; see `files.durable`.
 *
 * @param root the directory that keys are relative to. Default: `/`, which makes keys the same as the object
 *   paths that the engine and its clients use
 */
export function createLocalStore(root = "/"): ObjectStore & { readonly files: FileFeatures } {
  const prefix = join(root, "x").slice(0, -1);
  const pathOf = (key: string): string => prefix + checkKey(key);
  const directoryOf = (key: string): string => (key === "" ? root : pathOf(key));
  return {
    listsInOrder: false,
    uriOf: (key) => (key === "" ? join(root) : prefix + key),
    keyOf: (uri) => uri.slice(prefix.length),
    get: (key) => orMissing(readFile(pathOf(key))),
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
      const found = await orMissing(readdir(directoryOf(directory), { withFileTypes: true }));
      yield (found ?? [])
        .filter(({ name }) => !TEMPORARY.test(name))
        .map((entry) =>
          entry.isDirectory() ? { name: entry.name, isDirectory: true } : { name: entry.name },
        );
    },
    exists: async (directory) => (await orMissing(access(directoryOf(directory)).then(() => true))) ?? false,
    put: (key, bytes) => viaTemporary(pathOf(key), bytes, rename),
    putStream: (key, bytes, signal) => viaTemporary(pathOf(key), bytes, rename, signal),
    putIfAbsent: (key, bytes) => putIfAbsent(pathOf(key), bytes),
    delete: async (key) => (await orMissing(unlink(pathOf(key)).then(() => true))) ?? false,
    move: (from, to) => known(intoDirectory(pathOf(to), () => rename(pathOf(from), pathOf(to)))),
    deleteDirectory: (directory) => known(rm(pathOf(directory), { recursive: true, force: true })),
    files: {
      durable: createDurableWrites(pathOf),
      moveDirectory: (from, to) => moveDirectory(pathOf(from), pathOf(to)),
      async identityOf(directory) {
        const found = await orMissing(stat(pathOf(directory), { bigint: true }));
        return found && `${found.ino}-${found.birthtimeNs}`;
      },
      directoryStamp(directory) {
        const found = statNow(directoryOf(directory));
        return found && { identity: found.ino, modifiedNs: found.mtimeNs, changedNs: found.ctimeNs };
      },
      fileStamp(key) {
        const found = statNow(pathOf(key));
        // Not the time of the last change: taking away the temporary name of a file changes that.
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
}

/** The engine passes over names of this form; see `is_valid_file_path` in the `object_store` crate. */
const TEMPORARY = /#\d+$/;

/** A part that is empty, `.` or `..`, or a character that no path has. */
const NO_KEY = /(?:^|\/)\.{0,2}(?:\/|$)|\0/;

function checkKey(key: string): string {
  if (NO_KEY.test(key)) throw new Error(`"${key}" is no object key`);
  return key;
}

/** Takes two microseconds, where a call in the background takes fifty. */
function statNow(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    throw toDiskError(error);
  }
}

function hasCode(error: unknown, code: string): boolean {
  return (error as NodeJS.ErrnoException).code === code;
}

function isMissing(error: unknown): boolean {
  return hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR");
}

async function orMissing<T>(result: Promise<T>): Promise<T | undefined> {
  return result.catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw toDiskError(error);
  });
}

function known<T>(result: Promise<T>): Promise<T> {
  return result.catch((error: unknown) => {
    throw toDiskError(error);
  });
}

async function headOf(key: string, path: string): Promise<ObjectInfo | undefined> {
  const found = await orMissing(stat(path, { bigint: true }));
  if (!found?.isFile()) return undefined;
  // The same text as Lance 14 gives: inode, modification time in microseconds, size, in quotes.
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

async function putIfAbsent(path: string, bytes: Uint8Array): Promise<boolean> {
  let created = true;
  await viaTemporary(path, bytes, async (temporary) => {
    await link(temporary, path).catch((error: unknown) => {
      if (!hasCode(error, "EEXIST")) throw error;
      created = false;
    });
    await unlink(temporary).catch(() => {});
  });
  return created;
}

/** Writes a temporary file beside the target and lets `publish` give it its name; makes missing directories. */
async function viaTemporary(
  path: string,
  content: Uint8Array | AsyncIterable<Uint8Array>,
  publish: (temporary: string, path: string) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const temporary = `${path}#${randomInt(2 ** 47)}`;
  const create = () => open(temporary, "wx");
  const write = (file: FileHandle) => writeFile(file, content, { signal }).finally(() => file.close());
  try {
    if (content instanceof Uint8Array) {
      await intoDirectory(path, async () => {
        await write(await create());
        await publish(temporary, path);
      });
    } else {
      // A stream can be read only once.
      await write(await intoDirectory(path, create));
      await publish(temporary, path);
    }
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw toDiskError(error);
  }
}

/** How often somebody may take a directory away while a file gets into it. */
const MAX_ATTEMPTS = 10;

/** Does what needs the directory of a path, and makes that when it is missing. */
async function intoDirectory<T>(path: string, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!hasCode(error, "ENOENT") || attempt === MAX_ATTEMPTS) throw error;
    }
    await makeDirectories(dirname(path));
  }
}

async function makeDirectories(path: string): Promise<void> {
  await mkdir(path, { recursive: true }).catch(async (error: unknown) => {
    if (!hasCode(error, "ENOENT")) throw error;
    // Where nothing can be written, making several says that something is missing; making one says why.
    await mkdir(path);
  });
}

async function moveDirectory(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (["ENOTEMPTY", "EEXIST", "ENOENT"].some((code) => hasCode(error, code))) return false;
    throw toDiskError(error);
  }
}

/** The real path of what exists of a path, with the rest as it is. As quick as {@link statNow}. */
function realpathOfExisting(path: string): string {
  const parent = resolve(path, "..");
  return realpathNow(path) ?? join(parent === path ? path : realpathOfExisting(parent), basename(path));
}

function realpathNow(path: string): string | undefined {
  // An error costs more than the question whether there will be one.
  if (statNow(path) === undefined) return undefined;
  try {
    return realpathSync.native(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw toDiskError(error);
  }
}
