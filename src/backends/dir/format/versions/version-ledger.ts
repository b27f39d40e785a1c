import { basename, dirname } from "node:path/posix";
import { putNewest } from "../../../../runtime/collections.ts";
import { type DatasetRef, manifestName, parseManifestName, versionsDirectory } from "../dataset.ts";
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

/** Versions of a dataset that this process knows. */
interface Known {
  /** All versions up to this one are known. */
  upTo: bigint;
  /** Later versions that this process has made. */
  readonly own: Set<bigint>;
}

/** Maximum number of own versions ahead of the known ones that are remembered. */
const MAX_OWN = 1_000;

/** Maximum number of versions of others that are looked at one by one. */
const MAX_UNKNOWN = 100_000n;

const ledger = createDatasetMemory<Known>();

/** Notes a version that this process has made. */
export function noteOwnVersion(dataset: DatasetRef, version: bigint): void {
  noteOwn(dataset.store, versionsDirectory(dataset), version);
}

/** Notes a version that this process has made, by the key of its manifest. */
export function noteOwnManifest(store: ObjectStore, key: string): void {
  const version = parseManifestName(basename(key))?.version;
  if (version !== undefined) noteOwn(store, dirname(key), version);
}

function noteOwn(store: ObjectStore, directory: string, version: bigint): void {
  const known = ledger.get(store, directory);
  if (known === undefined || version <= known.upTo) return;
  known.own.add(version);
  while (known.own.delete(known.upTo + 1n)) known.upTo++;
  for (const oldest of known.own) {
    if (known.own.size <= MAX_OWN) return;
    known.own.delete(oldest);
  }
}

/** Versions that others have made. */
export interface Unknown {
  /** The versions, ascending. */
  readonly versions: readonly bigint[];
  /**
   * Whether this process looks at the dataset for the first time, or after too many versions; then only the newest is in the
   * list.
   */
  readonly first: boolean;
  /** Makes the versions unknown again, because they could not be adopted. */
  forget(): void;
}

/**
 * Returns the versions of a dataset that this process neither made nor knew, and knows them from then on.
 *
 * @param latest the newest version
 */
export function takeUnknownVersions(dataset: DatasetRef, latest: bigint): Unknown {
  const { store } = dataset;
  const directory = versionsDirectory(dataset);
  const known = ledger.get(store, directory);
  // A table may be dropped and made again, and a branch, too. A file of any number may come from a client.
  const first = known === undefined || latest < known.upTo || latest - known.upTo > MAX_UNKNOWN;
  const versions: bigint[] = [];
  for (let version = first ? latest : known.upTo + 1n; version <= latest; version++)
    if (first || !known.own.has(version)) versions.push(version);
  const own = new Set([...(known?.own ?? [])].filter((version) => version > latest));
  ledger.set(store, directory, { upTo: latest, own });
  return { versions, first, forget: () => ledger.forget(store, directory) };
}
