import { dirname } from "node:path/posix";
import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import { isLanceError } from "../../../namespace/errors.ts";
import { blobDirectories } from "./blob-files.ts";
import { type DatasetRef, dataDirectory } from "./dataset.ts";
import { filesOf } from "./prune.ts";
import { readVersion } from "./version-files.ts";
import { noteOwnVersion } from "./version-ledger.ts";

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
    const { key, manifest } = await readVersion(dataset, version);
    noteOwnVersion(dataset, manifest.version);
    await syncFilesOf(dataset, manifest, key);
  } catch (error) {
    // The files of a version of an unknown kind cannot be listed.
    if (!isLanceError(error, "Unsupported")) throw error;
    await dataset.store.files.syncTree(dataset.root);
  }
}

/**
 * Makes the files that a version refers to durable, those of its blobs included, with their names and those of their
 * directories. Files of the previous version were synced when that version was published.
 *
 * @param key the key of the version's own manifest, if it exists already
 * @throws UnsyncedError
 */
export async function syncFilesOf(dataset: DatasetRef, manifest: Manifest, key?: string): Promise<void> {
  const { files } = dataset.store;
  if (files === undefined) return;
  const before = await readVersion(dataset, manifest.version - 1n).catch(ifGone);
  const known = new Set(before === undefined ? [] : filesOf(dataset, before.manifest));
  const fresh = filesOf(dataset, manifest).filter((file) => !known.has(file));
  for (const directory of blobDirectories(manifest, fresh)) await files.syncTree(directory);
  await files.syncObjects(key === undefined ? fresh : [...fresh, key], dirname(dataset.root));
}

/** Makes all indices of a table durable; indices that were synced earlier take no time. */
export async function syncIndices(dataset: DatasetRef): Promise<void> {
  await dataset.store.files?.syncTree(`${dataDirectory(dataset)}/_indices`);
}

/** Makes the names of branches durable, and the removal of a deleted branch's name. */
export async function syncBranches({ store, root }: DatasetRef): Promise<void> {
  await store.files?.syncTree(`${root}/_refs`);
  await store.files?.syncObjects([], root);
}

function ifGone(error: unknown): undefined {
  if (!isLanceError(error, "TableVersionNotFound")) throw error;
}
