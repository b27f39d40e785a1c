import { type DatasetRef, manifestName, versionsDirectory } from "../dataset.ts";
import { createDatasetMemory } from "./dataset-memory.ts";

interface Durable {
  readonly version: bigint;
  /** Distinguishes its manifest from those of other versions that have had its number. */
  readonly stamp: string | undefined;
}

const versions = createDatasetMemory<Durable>();

/**
 * Returns the newest version whose files this process knows to be durable; undefined if it knows none, and if that version is gone:
 * another one may have got its number after a deletion, or in a new table in the same place.
 *
 * The engine commits a version before its files are synced, so a later version can be the first to be synced. It then
 * has to sync everything that the versions between did not.
 */
export function durableVersion(dataset: DatasetRef): bigint | undefined {
  const known = versions.get(dataset.store, versionsDirectory(dataset));
  return known !== undefined && stampOf(dataset, known.version) === known.stamp ? known.version : undefined;
}

/** Notes that all files of a version are durable, including those of earlier versions that it still needs. */
export function noteDurable(dataset: DatasetRef, version: bigint): void {
  const known = durableVersion(dataset);
  if (known !== undefined && known > version) return;
  versions.set(dataset.store, versionsDirectory(dataset), { version, stamp: stampOf(dataset, version) });
}

function stampOf(dataset: DatasetRef, version: bigint): string | undefined {
  for (const scheme of ["V2", "V1"] as const) {
    const key = `${versionsDirectory(dataset)}/${manifestName(version, scheme)}`;
    const stamp = dataset.store.files?.fileStamp(key);
    if (stamp !== undefined) return stamp;
  }
  return undefined;
}
