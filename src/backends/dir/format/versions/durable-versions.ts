import type { DatasetRef } from "../dataset.ts";
import { versionsDirectory } from "../dataset.ts";
import { createDatasetMemory } from "./dataset-memory.ts";

const versions = createDatasetMemory<bigint>();

/**
 * Returns the newest version whose files this process knows to be durable; undefined if it knows none.
 *
 * The engine commits a version before its files are synced, so a later version can be the first to be synced. It then
 * has to sync everything that the versions between did not.
 */
export function durableVersion(dataset: DatasetRef): bigint | undefined {
  return versions.get(dataset.store, versionsDirectory(dataset));
}

/** Notes that all files of a version are durable, including those of earlier versions that it still needs. */
export function noteDurable(dataset: DatasetRef, version: bigint): void {
  const known = durableVersion(dataset);
  // A first version begins a new history where another table may have been.
  const durable = known === undefined || version === 1n || version > known ? version : known;
  versions.set(dataset.store, versionsDirectory(dataset), durable);
}

/** Forgets what is known of a dataset's versions. */
export function forgetDurable(dataset: DatasetRef): void {
  versions.forget(dataset.store, versionsDirectory(dataset));
}
