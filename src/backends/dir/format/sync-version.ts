import { dirname } from "node:path/posix";
import { isLanceError } from "../../../namespace/errors.ts";
import { blobDirectories } from "./blob-files.ts";
import { type DatasetRef, dataDirectory } from "./dataset.ts";
import { durableVersion, noteDurable } from "./durable-versions.ts";
import { readSegmentIds } from "./index-section.ts";
import type { ManifestFile } from "./manifest-file.ts";
import { readVersion } from "./version-files.ts";
import { noteOwnVersion } from "./version-ledger.ts";
import { filesOf } from "./version-parts.ts";

/*
 * The engine and clients that write tables directly do not sync their files. On object stores none of this is
 * necessary.
 */

/**
 * Makes a version durable that the engine wrote for this process.
 *
 * @param version default: the newest
 * @throws UnsyncedError
 */
export async function syncVersion(dataset: DatasetRef, version?: bigint): Promise<void> {
  if (version !== undefined) noteOwnVersion(dataset, version);
  if (dataset.store.files === undefined) return;
  try {
    const file = await readVersion(dataset, version);
    noteOwnVersion(dataset, file.manifest.version);
    await syncFilesOf(dataset, file, true);
    noteDurable(dataset, file.manifest.version);
  } catch (error) {
    // The files of a version of an unknown kind cannot be listed.
    if (!isLanceError(error, "Unsupported")) throw error;
    await dataset.store.files.syncTree(dataset.root);
  }
}

/**
 * Makes a version durable on which another one is about to be built, unless this process knows that it is.
 *
 * @throws UnsyncedError
 */
export async function ensureDurable(dataset: DatasetRef, version: bigint): Promise<void> {
  if (dataset.store.files === undefined || (durableVersion(dataset) ?? -1n) >= version) return;
  // A version that is gone was not the newest, so nothing can be built on it.
  await syncVersion(dataset, version).catch(ifGone);
}

/**
 * Makes the files that a version refers to durable, those of its blobs and indices included, with their names and those
 * of their directories. Files of an earlier version that is known to be durable need no sync.
 *
 * @param exists whether the version's own manifest exists already
 * @throws UnsyncedError
 */
export async function syncFilesOf(dataset: DatasetRef, file: ManifestFile, exists: boolean): Promise<void> {
  const { files } = dataset.store;
  if (files === undefined) return;
  const { key, manifest } = file;
  const before = await readDurable(dataset, manifest.version);
  const known = new Set(before && filesOf(dataset, before.manifest));
  const fresh = filesOf(dataset, manifest).filter((each) => !known.has(each));
  for (const directory of blobDirectories(manifest, fresh)) await files.syncTree(directory);
  const indexed = new Set(before && (await readSegmentIds(before)));
  const isIndexed = (await readSegmentIds(file)).every((id) => indexed.has(id));
  if (!isIndexed) await files.syncTree(`${dataDirectory(dataset)}/_indices`);
  await files.syncObjects(exists ? [...fresh, key] : fresh, dirname(dataset.root));
}

/** Makes the names of branches durable, and the removal of a deleted branch's name. */
export async function syncBranches({ store, root }: DatasetRef): Promise<void> {
  await store.files?.syncTree(`${root}/_refs`);
  await store.files?.syncObjects([], root);
}

/** Reads the newest version before another one whose files are durable; returns undefined if there is none. */
async function readDurable(dataset: DatasetRef, version: bigint): Promise<ManifestFile | undefined> {
  const durable = durableVersion(dataset);
  if (durable === undefined) return undefined;
  return readVersion(dataset, durable < version ? durable : version - 1n).catch(ifGone);
}

function ifGone(error: unknown): undefined {
  if (!isLanceError(error, "TableVersionNotFound")) throw error;
}
