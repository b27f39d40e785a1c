import { randomInt } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, stat, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ObjectInfo, ObjectStore } from "./storage.ts";

/**
 * A local disk as an object store.
 *
 * Writers of the Lance engine and writers here exclude each other: both write a temporary file beside the
 * target, named `<target>#<digits>`, and give it its final name by a hard link, which fails if the name is
 * taken (the `object_store` crate's local store with `PutMode::Create`). A crash leaves at most such a
 * temporary file, which the engine and this store leave out of listings. As in the engine, files are not
 * synced, so a commit survives the end of the process but perhaps not a loss of power.
 *
 * @param root the directory that keys are relative to. Default: `/`, which makes keys the same as the object
 *   paths that the engine and its clients use
 */
export function createLocalStore(root = "/"): ObjectStore {
  const pathOf = (key: string): string => join(root, checkKey(key));
  return {
    listsInOrder: false,
    get: (key) => orMissing(readFile(pathOf(key))),
    getTail: (key, length) =>
      readPart(pathOf(key), (size) => [Math.max(0, size - length), size]).then(
        (part) => part && { size: part.size, bytes: part.bytes },
      ),
    getRange: (key, start, end) =>
      readPart(pathOf(key), (size) => [start, Math.min(end, size)]).then((part) => part?.bytes),
    head: (key) => headOf(key, pathOf(key)),
    async *list(directory) {
      const names = await orMissing(readdir(pathOf(directory)));
      yield (names ?? []).filter((name) => !TEMPORARY.test(name)).map((name) => ({ name }));
    },
    put: (key, bytes) => viaTemporary(pathOf(key), bytes, rename),
    putIfAbsent: (key, bytes) => putIfAbsent(pathOf(key), bytes),
    delete: async (key) => (await orMissing(unlink(pathOf(key)).then(() => true))) ?? false,
  };
}

/** The engine passes over names of this form; see `is_valid_file_path` in the `object_store` crate. */
const TEMPORARY = /#\d+$/;

function checkKey(key: string): string {
  if (key.split("/").some((part) => part === "" || part === "." || part === ".." || part.includes("\0"))) {
    throw new Error(`"${key}" is no object key`);
  }
  return key;
}

function hasCode(error: unknown, code: string): boolean {
  return (error as NodeJS.ErrnoException).code === code;
}

async function orMissing<T>(result: Promise<T>): Promise<T | undefined> {
  return result.catch((error: unknown) => {
    if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) return undefined;
    throw error;
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
  bytes: Uint8Array,
  publish: (temporary: string, path: string) => Promise<void>,
): Promise<void> {
  const temporary = `${path}#${randomInt(2 ** 47)}`;
  const write = () => writeFile(temporary, bytes, { flag: "wx" });
  try {
    await write().catch(async (error: unknown) => {
      if (!hasCode(error, "ENOENT")) throw error;
      await mkdir(dirname(path), { recursive: true });
      await write();
    });
    await publish(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw error;
  }
}
