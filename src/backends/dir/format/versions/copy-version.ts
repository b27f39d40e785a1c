import { LanceError } from "../../../../namespace/errors.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import { type DatasetRef, dataDirectory, transactionKey } from "../dataset.ts";
import { damagedFile } from "../files/damaged-file.ts";
import { readSegments } from "../files/index-section.ts";
import type { ManifestFile } from "../files/manifest-file.ts";
import { listTree } from "../storage.ts";
import { writeVersionHint } from "./version-hint.ts";
import { readParts } from "./version-parts.ts";

/** Options of a copy. */
export interface CopyOptions {
  /** Whether the copy may share files with its source on a disk. */
  readonly mayLink: boolean;
  /** Ends the work early. */
  readonly signal: AbortSignal;
}

/** Number of files that are copied concurrently. */
const COPIES = 8;

/** Index of a table that takes writes through a log; it is about files that no version names. */
const LOG_INDEX = "__lance_mem_wal";

/**
 * Copies a version with everything that it needs to a place without a dataset, where it keeps its number and its bytes.
 * Readers see nothing before the manifest, which is last. An interrupted copy leaves files without a version.
 *
 * @throws LanceError Unsupported for a version that needs files of other tables or newer software; ConcurrentModification
 *   if the version is deleted meanwhile; DataLoss if one of its files is missing
 */
export async function copyVersion(
  source: DatasetRef,
  file: ManifestFile,
  target: DatasetRef,
  { mayLink, signal }: CopyOptions,
): Promise<void> {
  const { store } = source;
  await checkOwnFiles(file);
  const parts = await readParts(source, file);
  if (parts === undefined) throw deletedMeanwhile();
  const keys = [...parts.files.keys()];
  // The engine does without the record of a transaction.
  const transaction = transactionKey(source, file.manifest.transactionFile);
  for (const directory of parts.directories.keys())
    keys.push(...(await listTree(store, directory)).map((name) => `${directory}/${name}`));

  async function copy(key: string): Promise<void> {
    signal.throwIfAborted();
    const to = dataDirectory(target) + key.slice(dataDirectory(source).length);
    if (mayLink && (await store.files?.link(key, to))) return;
    if ((await store.copy(key, to)) || key === transaction) return;
    const isDeleted = (await store.head(file.key)) === undefined;
    throw isDeleted ? deletedMeanwhile() : damagedFile(key, "is missing");
  }
  await forEachOf(keys, COPIES, copy);
  await copy(file.key);
  await writeVersionHint(target, file.manifest.version);
}

/** @throws LanceError Unsupported */
async function checkOwnFiles(file: ManifestFile): Promise<void> {
  if (file.manifest.basePaths.length > 0)
    throw new LanceError("Unsupported", "the version has files in the directory of another table or branch");
  if ((await readSegments(file)).some(({ name }) => name === LOG_INDEX))
    throw new LanceError(
      "Unsupported",
      "the table takes writes through a log, whose rows a copy would not have",
    );
}

function deletedMeanwhile(): LanceError {
  return new LanceError("ConcurrentModification", "the version was deleted while it was copied");
}
