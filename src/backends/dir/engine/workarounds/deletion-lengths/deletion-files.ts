import { scanIpcFile } from "../../../../../arrow/file-scan.ts";
import { isLanceError } from "../../../../../namespace/errors.ts";
import { forEachOf } from "../../../concurrency/for-each.ts";
import { type DatasetRef, dataDirectory } from "../../../format/dataset.ts";
import { createStampMemory, type StampMemory } from "../../../format/directory-stamp.ts";
import { damagedFile } from "../../../format/files/damaged-file.ts";
import { deletionKey } from "../../../format/files/deletion-file.ts";
import { readRoaring } from "../../../format/files/roaring.ts";
import type { ObjectStore } from "../../../format/storage.ts";
import { readVersion } from "../../../format/versions/version-files.ts";

/** Number of files that are read at a time. */
const FILES = 16;

/** Maximum size of the unpacked offsets of a file, in bytes: those of a fragment with 268 million deleted rows. */
const MAX_UNPACKED_BYTES = 2 ** 30;

/** Files of deleted rows in the directories of an open table, each read once. */
export interface DeletionFiles {
  /**
   * Reads the files that have come to a table or a branch since the last call.
   *
   * @param dataset default: the main branch
   */
  look(dataset?: DatasetRef): Promise<void>;
  /**
   * Refuses a version that refers to a damaged file.
   *
   * @param version default: the newest
   * @param dataset default: the main branch
   * @throws LanceError DataLoss
   */
  refuseDamaged(version?: bigint, dataset?: DatasetRef): Promise<void>;
}

/** State of one directory. */
interface Seen {
  readonly stamps: StampMemory;
  names: ReadonlySet<string>;
}

/**
 * Remembers the files of deleted rows of an open table, which never change.
 *
 * A damaged file matters only to the versions that refer to it. It is read again for each of their calls, because it may have been
 * replaced by a copy from a backup.
 */
export function createDeletionFiles(main: DatasetRef): DeletionFiles {
  const { store } = main;
  const directories = new Map<string, Seen>();
  /** Keys of damaged files by their names, which are random. */
  const damaged = new Map<string, string>();

  async function check(key: string): Promise<void> {
    const bytes = await store.get(key);
    if (bytes !== undefined) await checkDeletions(key, bytes);
  }
  return {
    async look(dataset = main) {
      const directory = `${dataDirectory(dataset)}/_deletions`;
      const seen = directories.get(directory) ?? { stamps: createStampMemory(), names: new Set() };
      directories.set(directory, seen);
      const before = performance.now();
      const stamp = store.files?.directoryStamp(directory);
      if (store.files !== undefined && (stamp === undefined || seen.stamps.isUnchanged(stamp))) return;
      const names = await namesIn(store, directory);
      await forEachOf(names.difference(seen.names), FILES, (name) =>
        check(`${directory}/${name}`).catch((error: unknown) => {
          if (!isLanceError(error, "DataLoss")) throw error;
          damaged.set(name, `${directory}/${name}`);
        }),
      );
      seen.names = names;
      if (stamp !== undefined) seen.stamps.note(stamp, before);
    },
    async refuseDamaged(version, dataset = main) {
      if (damaged.size === 0) return;
      const { fragments } = (await readVersion(dataset, version)).manifest;
      for (const fragment of fragments) {
        const name = deletionKey(dataset, fragment)?.replace(/^.*\//, "") ?? "";
        const key = damaged.get(name);
        if (key === undefined) continue;
        await check(key);
        damaged.delete(name);
      }
    },
  };
}

async function namesIn(store: ObjectStore, directory: string): Promise<Set<string>> {
  const names = new Set<string>();
  for await (const page of store.list(directory)) {
    for (const { name } of page) if (/\.(?:arrow|bin)$/.test(name)) names.add(name);
  }
  return names;
}

/**
 * Checks that the lengths in a file of deleted rows fit the file.
 *
 * Lance 12.0.0 allocates what an Arrow file says before it compares the length with the file. A length that does not fit the memory
 * ends the process.
 *
 * @param key the file; its ending says whether it is an Arrow file or a Roaring bitmap
 * @throws LanceError DataLoss
 */
export async function checkDeletions(key: string, bytes: Uint8Array): Promise<void> {
  try {
    if (key.endsWith(".bin")) readRoaring(bytes);
    else await checkOffsets(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  } catch (cause) {
    throw damagedFile(key, "is not a list of deleted rows", cause);
  }
}

async function checkOffsets(file: Buffer): Promise<void> {
  const { fields } = (await scanIpcFile(file, MAX_UNPACKED_BYTES)).schema;
  const [offsets, ...others] = fields.map(({ type, dictionary }) => (dictionary ? undefined : type));
  if (others.length > 0 || offsets?.name !== "int" || offsets.bits !== 32 || offsets.signed)
    throw new RangeError("its only column must be one of unsigned 32-bit numbers");
}
