import { scanIpcFile } from "../../../../../arrow/ipc/file-scan.ts";
import type { Manifest } from "../../../../../gen/lance/format/table_pb.ts";
import { isLanceError } from "../../../../../namespace/errors.ts";
import { forEachOf } from "../../../concurrency/for-each.ts";
import { type DatasetRef, dataDirectory } from "../../../format/dataset.ts";
import { keyOfBase } from "../../../format/files/base-paths.ts";
import { damagedFile } from "../../../format/files/damaged-file.ts";
import { deletionKey } from "../../../format/files/deletion-file.ts";
import type { ManifestFile } from "../../../format/files/manifest-file.ts";
import { readRoaring } from "../../../format/files/roaring.ts";
import { readVersion, readVersionIfThere } from "../../../format/versions/version-files.ts";

/** Number of files that are read at a time. */
const FILES = 16;

/** Maximum size of the unpacked offsets of a file, in bytes: those of a fragment with 268 million deleted rows. */
const MAX_UNPACKED_BYTES = 2 ** 30;

/** Maximum number of files and of versions of a table that are remembered. */
const MAX_KNOWN = 50_000;

/** Files of deleted rows of an open table, each read once before the engine reads it. */
export interface DeletionFiles {
  /** Reads the files of the newest version of the main branch that were not read before. */
  look(): Promise<void>;
  /**
   * Refuses a version that refers to a damaged file.
   *
   * @param version default: the newest; the files of the main branch's are those at the last look
   * @param dataset default: the main branch
   * @throws LanceError DataLoss; TableVersionNotFound
   */
  refuseDamaged(version?: bigint, dataset?: DatasetRef): Promise<void>;
}

/**
 * Remembers the files of deleted rows of an open table, which never change.
 *
 * A damaged file matters only to the versions that refer to it. It is read again for each of their calls, because it may have been
 * replaced by a copy from a backup.
 */
export function createDeletionFiles(main: DatasetRef): DeletionFiles {
  const { store } = main;
  /** Names of files that were read; they are random. */
  const read = new Set<string>();
  const damaged = new Set<string>();
  /** Versions of the main branch whose files were read. */
  const sound = new Set<bigint>();
  let isEmpty = false;

  async function check(name: string, directories: readonly string[]): Promise<void> {
    for (const directory of directories) {
      const bytes = await store.get(`${directory}/${name}`);
      if (bytes === undefined) continue;
      await checkDeletions(name, bytes);
      break;
    }
    if (read.size >= MAX_KNOWN) read.clear();
    read.add(name);
    damaged.delete(name);
  }
  /** Reads the files of a version, and throws the error of the first one that is damaged. */
  async function examine({ manifest }: ManifestFile, dataset: DatasetRef): Promise<void> {
    const unread = namesOf(manifest, dataset).filter((name) => !read.has(name));
    const directories = directoriesOf(manifest, dataset);
    await forEachOf(unread, FILES, async (name) => {
      await check(name, directories).catch((error: unknown) => {
        if (isLanceError(error, "DataLoss")) damaged.add(name);
        throw error;
      });
    });
  }
  return {
    async look() {
      isEmpty = !(await store.exists(`${dataDirectory(main)}/_deletions`));
      const newest = isEmpty ? undefined : await readVersionIfThere(main);
      if (newest === undefined) return;
      await examine(newest, main).catch((error: unknown) => {
        if (!isLanceError(error, "DataLoss")) throw error;
      });
    },
    async refuseDamaged(version, dataset = main) {
      const isMain = dataset.branch === undefined;
      if (isMain && damaged.size === 0 && (isEmpty || version === undefined || sound.has(version))) return;
      await examine(await readVersion(dataset, version), dataset);
      if (!isMain || version === undefined) return;
      if (sound.size >= MAX_KNOWN) sound.clear();
      sound.add(version);
    },
  };
}

/** Returns the names of a version's files. */
function namesOf(manifest: Manifest, dataset: DatasetRef): string[] {
  const keys = manifest.fragments.map((fragment) => deletionKey(dataset, fragment));
  return keys.filter((key) => key !== undefined).map((key) => key.slice(key.lastIndexOf("/") + 1));
}

/** Returns the directories in which the files of a version may be: its own, and those of the tables and branches that it came from. */
function directoriesOf({ basePaths }: Manifest, dataset: DatasetRef): string[] {
  const bases = basePaths.filter(({ isDatasetRoot }) => isDatasetRoot);
  const roots = [dataDirectory(dataset), ...bases.map((base) => keyOfBase(dataset, base))];
  return roots.filter((root) => root !== undefined).map((root) => `${root}/_deletions`);
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
