import { putNewest } from "../../../../runtime/collections.ts";
import { type DatasetRef, manifestName, versionsDirectory } from "../dataset.ts";
import { UnsyncedError } from "../local/local-errors.ts";
import type { ObjectStore } from "../storage.ts";

interface Durable {
  readonly version: bigint;
  /** Distinguishes its manifest from those of other versions that have had its number. */
  readonly stamp: string | undefined;
}

/** Default number of datasets of a store that are remembered. */
const MAX_DATASETS = 10_000;

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

/** Facts that this process remembers about the datasets of a store, by their directories of versions. */
interface DatasetMemory<T> {
  get(store: ObjectStore, directory: string): T | undefined;
  /** Remembers a value; evicts the values that were set the longest ago if there are too many. */
  set(store: ObjectStore, directory: string, value: T): void;
  forget(store: ObjectStore, directory: string): void;
}

/**
 * Creates an empty memory.
 *
 * @param max Maximum number of datasets of a store that are remembered. Default: 10,000.
 */
export function createDatasetMemory<T>(max = MAX_DATASETS): DatasetMemory<T> {
  const stores = new WeakMap<ObjectStore, Map<string, T>>();
  return {
    get: (store, directory) => stores.get(store)?.get(directory),
    set(store, directory, value) {
      const values = stores.get(store) ?? new Map<string, T>();
      stores.set(store, values);
      putNewest(values, directory, value, max);
    },
    forget: (store, directory) => void stores.get(store)?.delete(directory),
  };
}

/** The names of the files, and of the segments of indices, whose sync has failed. */
const failed = createDatasetMemory<ReadonlySet<string>>();

/**
 * Syncs files of a dataset, unless a sync of one of them has failed before: the system has discarded what it could not
 * write, and would report success (docs/adr/0032).
 *
 * @param names names of what is synced, each of which is used once
 * @throws UnsyncedError
 */
export async function syncUnlessFailed(
  dataset: DatasetRef,
  names: readonly string[],
  sync: () => Promise<void>,
): Promise<void> {
  const directory = versionsDirectory(dataset);
  const before = failed.get(dataset.store, directory);
  const lost = before && names.find((name) => before.has(name));
  if (lost !== undefined) throw new UnsyncedError(new Error(`an earlier sync of ${lost} has failed`));
  try {
    await sync();
  } catch (error) {
    if (error instanceof UnsyncedError) {
      const others = failed.get(dataset.store, directory) ?? [];
      failed.set(dataset.store, directory, new Set([...others, ...names]));
    }
    throw error;
  }
}
