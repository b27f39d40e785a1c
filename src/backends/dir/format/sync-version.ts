import { dirname } from "node:path/posix";
import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import { isLanceError } from "../../../namespace/errors.ts";
import { type DatasetRef, dataDirectory } from "./dataset.ts";
import { filesOf } from "./prune.ts";
import { readVersion } from "./version-files.ts";

/*
 * The engine and clients that write tables by themselves do not sync what they write. Object stores need none of this.
 */

/**
 * Lets a version that the engine made survive a loss of power.
 *
 * @param version default: the newest
 * @throws UnsyncedError
 */
export async function syncVersion(dataset: DatasetRef, version?: bigint): Promise<void> {
  if (dataset.store.files === undefined) return;
  try {
    const { key, manifest } = await readVersion(dataset, version);
    await syncFilesOf(dataset, manifest, key);
  } catch (error) {
    // The files of a version that is not understood are not known.
    if (!isLanceError(error, "Unsupported")) throw error;
    await dataset.store.files.syncTree(dataset.root);
  }
}

/**
 * Lets the files that a version refers to survive a loss of power, with their names and those of their directories. Files
 * that the version before has were synced when it was made.
 *
 * @param key the manifest's own, when it is there already
 * @throws UnsyncedError
 */
export async function syncFilesOf(dataset: DatasetRef, manifest: Manifest, key?: string): Promise<void> {
  const { files } = dataset.store;
  if (files === undefined) return;
  const before = await readVersion(dataset, manifest.version - 1n).catch(ifGone);
  const known = new Set(before === undefined ? [] : filesOf(dataset, before.manifest));
  const fresh = filesOf(dataset, manifest).filter((file) => !known.has(file));
  await files.syncObjects(key === undefined ? fresh : [...fresh, key], dirname(dataset.root));
}

/** Lets all indices of a table survive a loss of power; those that have been synced before take no time. */
export async function syncIndices(dataset: DatasetRef): Promise<void> {
  await dataset.store.files?.syncTree(`${dataDirectory(dataset)}/_indices`);
}

/** Lets the names of branches survive a loss of power, and that of a branch that is gone go for good. */
export async function syncBranches({ store, root }: DatasetRef): Promise<void> {
  await store.files?.syncTree(`${root}/_refs`);
  await store.files?.syncObjects([], root);
}

function ifGone(error: unknown): undefined {
  if (!isLanceError(error, "TableVersionNotFound")) throw error;
}
