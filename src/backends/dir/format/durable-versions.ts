import type { DatasetRef } from "./dataset.ts";
import { versionsDirectory } from "./dataset.ts";
import type { ObjectStore } from "./storage.ts";

/** Maximum number of datasets that are remembered. */
const MAX_DATASETS = 10_000;

/** By store and directory of versions, the least recently changed first. */
const stores = new WeakMap<ObjectStore, Map<string, bigint>>();

/**
 * Returns the newest version whose files this process knows to be durable; undefined if it knows none.
 *
 * The engine commits a version before its files are synced, so a later version can be the first to be synced. It then
 * has to sync everything that the versions between did not.
 */
export function durableVersion(dataset: DatasetRef): bigint | undefined {
  return stores.get(dataset.store)?.get(versionsDirectory(dataset));
}

/** Notes that all files of a version are durable, including those of earlier versions that it still needs. */
export function noteDurable(dataset: DatasetRef, version: bigint): void {
  const versions = stores.get(dataset.store) ?? new Map<string, bigint>();
  stores.set(dataset.store, versions);
  const directory = versionsDirectory(dataset);
  const known = versions.get(directory);
  versions.delete(directory);
  // A first version begins a new history where another table may have been.
  versions.set(directory, known === undefined || version === 1n || version > known ? version : known);
  for (const oldest of versions.keys()) {
    if (versions.size <= MAX_DATASETS) break;
    versions.delete(oldest);
  }
}
