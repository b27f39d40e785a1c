import { randomBytes } from "node:crypto";
import { keyIn, type ObjectStore } from "./storage.ts";

/**
 * Directory in that of a table, where a gateway keeps what a directory's catalog has in its base: jobs and leases. It belongs to tables that
 * another catalog lists.
 */
export const TABLE_BASE = ".lance-gateway";

/** Directories that belong to a table with everything in them; a branch has its own below `tree`. */
const OWN_DIRECTORY =
  /^(?:\.lance-gateway|(?:tree\/.+?\/)?_(?:versions|transactions|deletions|indices|refs|alter_transactions|mem_wal))\//;

/**
 * The other paths of a table. `data` and `tree` are names that other programs also use, so that only files of the format
 * count there: data files, the blobs of one in a directory with its name, and the unfinished files of writers.
 */
const OWN_FILES: readonly RegExp[] = [
  /^(?:tree\/.+?\/)?data\/(?:[^/]+\.lance(?:#\d+)?|\.tmp\w+|[^/]+\/(?:[^/]+\.blob(?:#\d+)?|\.tmp\w+)?)?$/,
  /^(?:tree\/.+?\/)?_latest\.manifest$/,
  /^tree\/(?:.+\/)?$/,
  /^\.lance-(?:reserved|deregistered)(?:#\d+)?$/,
  /^$/,
];

/**
 * Whether something in a table's directory belongs to the table.
 *
 * @param path relative to the directory; that of a directory, or of the object that some tools put in its place, ends in a
 *   slash
 */
export function isTableFile(path: string): boolean {
  return OWN_DIRECTORY.test(path) || OWN_FILES.some((pattern) => pattern.test(path));
}

/** Yields the files in a table's directory that do not belong to the table, as paths relative to the directory. */
export async function* otherFiles(store: ObjectStore, directory: string): AsyncGenerator<string> {
  const rest = [""];
  for (let within = rest.pop(); within !== undefined; within = rest.pop()) {
    for await (const page of store.list(`${directory}/${within}`.slice(0, -1))) {
      for (const { name, isDirectory } of page) {
        const path = `${within}${name}`;
        if (!isDirectory && !isTableFile(path)) yield path;
        if (isDirectory && !OWN_DIRECTORY.test(`${path}/`)) rest.push(`${path}/`);
      }
    }
  }
}

/** Whether a table's directory contains files that do not belong to the table. */
export async function hasOtherFiles(store: ObjectStore, directory: string): Promise<boolean> {
  for await (const _ of otherFiles(store, directory)) return true;
  return false;
}

const PREFIX = ".staging-";

const STAGING = /^\.staging-(?:upload-)?[0-9a-f]{32}$/;

/**
 * Creates the key of a directory for data that no table refers to yet; remains are removed after a day.
 *
 * @param baseKey the base directory of the catalog
 */
export function newStagingKey(baseKey: string): string {
  return keyIn(baseKey, `${PREFIX}${newStagingId()}`);
}

/** Creates an id of staged data, 32 hexadecimal digits. */
export function newStagingId(): string {
  return randomBytes(16).toString("hex");
}

/** Whether a name in the base directory belongs to staged data. */
export function isStagingName(name: string): boolean {
  return STAGING.test(name);
}

/** Size and age of everything below a directory. */
export interface Extent {
  readonly files: number;
  readonly bytes: number;
  /**
   * Time of the last write below it, in milliseconds since 1970 by the storage's clock; undefined for an empty
   * directory of an object store. On a disk, added and removed names count, too: a file that is being written may not
   * have a name yet.
   */
  readonly modifiedMillis: number | undefined;
}

/** Measures a directory. */
export async function measure(store: ObjectStore, directory: string): Promise<Extent> {
  let [files, bytes, modifiedMillis] = [0, 0, undefined as number | undefined];
  const note = (millis: number) => {
    modifiedMillis = Math.max(modifiedMillis ?? 0, millis);
  };
  const directories = [directory];
  for (let next = directories.pop(); next !== undefined; next = directories.pop()) {
    const stamp = store.files?.directoryStamp(next);
    if (stamp !== undefined) note(Number(stamp.modifiedNs / 1_000_000n));
    for await (const page of store.list(next)) {
      for (const { name, isDirectory, info } of page) {
        const key = keyIn(next, name);
        if (isDirectory) directories.push(key);
        const found = isDirectory ? undefined : (info ?? (await store.head(key)));
        if (found === undefined) continue;
        files++;
        bytes += found.size;
        note(found.modifiedMillis);
      }
    }
  }
  return { files, bytes, modifiedMillis };
}
