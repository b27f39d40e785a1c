import { type DatasetRef, manifestName, versionsDirectory } from "../dataset.ts";
import { createDatasetMemory } from "./dataset-memory.ts";

interface Durable {
  readonly version: bigint;
  /** Distinguishes its manifest from those of other versions that have had its number. */
  readonly stamp: string | undefined;
}

const versions = createDatasetMemory<Durable>();

/** Files of a version, and the ids of its segments of indices. */
export interface VersionContent {
  readonly files: ReadonlySet<string>;
  readonly segments: ReadonlySet<string>;
}

/** Maximum number of datasets whose content is remembered, and of the files of each. */
const MAX_CONTENTS = 64;
const MAX_FILES = 1_000;

/** The content of durable versions, so that it need not be read again for each version that follows. */
const contents = createDatasetMemory<VersionContent & { readonly of: Durable }>(MAX_CONTENTS);

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

/**
 * Notes that all files of a version are durable, including those of earlier versions that it still needs.
 *
 * @param content what the version consists of. Default: it is read when it is needed
 */
export function noteDurable(dataset: DatasetRef, version: bigint, content?: VersionContent): void {
  const known = durableVersion(dataset);
  if (known !== undefined && known > version) return;
  const directory = versionsDirectory(dataset);
  const durable = { version, stamp: stampOf(dataset, version) };
  versions.set(dataset.store, directory, durable);
  if (content === undefined || content.files.size + content.segments.size > MAX_FILES)
    contents.forget(dataset.store, directory);
  else contents.set(dataset.store, directory, { ...content, of: durable });
}

/** Returns the content of the durable version, if it is remembered. */
export function durableContent(dataset: DatasetRef): VersionContent | undefined {
  const directory = versionsDirectory(dataset);
  const content = contents.get(dataset.store, directory);
  return content?.of === versions.get(dataset.store, directory) ? content : undefined;
}

function stampOf(dataset: DatasetRef, version: bigint): string | undefined {
  for (const scheme of ["V2", "V1"] as const) {
    const key = `${versionsDirectory(dataset)}/${manifestName(version, scheme)}`;
    const stamp = dataset.store.files?.fileStamp(key);
    if (stamp !== undefined) return stamp;
  }
  return undefined;
}
