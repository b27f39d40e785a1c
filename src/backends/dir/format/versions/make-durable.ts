import { dirname } from "node:path/posix";
import { isLanceError } from "../../../../namespace/errors.ts";
import { createSharedCheck } from "../../../../runtime/promises.ts";
import { type DatasetRef, dataDirectory, versionsDirectory } from "../dataset.ts";
import { readSegmentIds } from "../files/index-section.ts";
import { blobDirectories } from "../files/manifest.ts";
import type { ManifestFile } from "../files/manifest-file.ts";
import type { ObjectStore } from "../storage.ts";
import { describeVersion, readVersion, versionNotFound } from "./version-files.ts";
import {
  createDatasetMemory,
  durableContent,
  durableVersion,
  noteDurable,
  noteOwnVersion,
  syncUnlessFailed,
  type VersionContent,
} from "./version-ledger.ts";
import { filesOf } from "./version-parts.ts";

/*
 * The engine and clients that write tables directly do not sync their files. On object stores none of this is
 * necessary.
 */

/**
 * Makes a version durable that the engine wrote for this process. The versions whose callers arrive while a sync of the
 * dataset runs are synced together by the next.
 *
 * @param version default: the newest
 * @throws LanceError TableVersionNotFound; UnsyncedError, also if another version of the same sync fails
 */
export async function syncVersion(dataset: DatasetRef, version?: bigint): Promise<void> {
  if (version !== undefined) noteOwnVersion(dataset, version);
  if (dataset.store.files === undefined) return;
  const own = version ?? (await describeVersion(dataset)).version;
  noteOwnVersion(dataset, own);
  const gone = await sharedSyncOf(dataset)(own);
  if (gone.has(own)) throw versionNotFound(dataset, own);
}

/** Makes a version durable together with others; returns those of them that are gone. */
type SharedSync = (version: bigint) => Promise<ReadonlySet<bigint>>;

const sharedSyncs = createDatasetMemory<SharedSync>();

function sharedSyncOf(dataset: DatasetRef): SharedSync {
  const directory = versionsDirectory(dataset);
  const known = sharedSyncs.get(dataset.store, directory);
  if (known !== undefined) return known;
  const sync = createSharedBatch((versions: ReadonlySet<bigint>) =>
    syncAll(
      dataset,
      [...versions].sort((a, b) => (a < b ? -1 : 1)),
    ),
  );
  sharedSyncs.set(dataset.store, directory, sync);
  return sync;
}

/** Number of versions that are made durable together; their manifests are in memory. */
const BATCH = 64;

/**
 * Makes versions durable that were written without a sync, many together. Versions that are gone are left out.
 *
 * @param versions ascending
 * @throws UnsyncedError
 */
export async function syncVersions(dataset: DatasetRef, versions: readonly bigint[]): Promise<void> {
  for (const version of versions) noteOwnVersion(dataset, version);
  if (dataset.store.files !== undefined) await syncAll(dataset, versions);
}

/** Syncs versions in ascending order; returns those that are gone. */
async function syncAll(dataset: DatasetRef, versions: readonly bigint[]): Promise<ReadonlySet<bigint>> {
  const gone = new Set<bigint>();
  const justWritten = { ...dataset, store: withTailsNow(dataset.store) };
  await orWhole(dataset, async () => {
    for (const batch of batchesOf(dataset, versions)) {
      const read = async (version: bigint) => {
        const file = await readVersion(justWritten, version).catch(ifGone);
        if (file === undefined) gone.add(version);
        return file;
      };
      const found = (await Promise.all(batch.map(read))).filter((file) => file !== undefined);
      const content = await syncFilesOfAll(dataset, found, true);
      for (const file of found)
        noteDurable(dataset, file.manifest.version, file === found.at(-1) ? content : undefined);
    }
  });
  return gone;
}

/** Reads the ends of files without a wait: these are manifests that the engine has just written. */
function withTailsNow(store: ObjectStore): ObjectStore {
  const { files } = store;
  return files === undefined ? store : { ...store, getTail: async (...tail) => files.tailNow(...tail) };
}

/** Divides ascending versions: a later one than the durable version may need files that an earlier one does not have. */
function batchesOf(dataset: DatasetRef, versions: readonly bigint[]): bigint[][] {
  const durable = durableVersion(dataset) ?? -1n;
  const parts = [versions.filter((each) => each <= durable), versions.filter((each) => each > durable)];
  return parts.flatMap((part) =>
    Array.from({ length: Math.ceil(part.length / BATCH) }, (_, at) =>
      part.slice(at * BATCH, (at + 1) * BATCH),
    ),
  );
}

/** Syncs the whole dataset if it has a version of an unknown kind, whose files cannot be listed. */
async function orWhole(dataset: DatasetRef, sync: () => Promise<void>): Promise<void> {
  try {
    await sync();
  } catch (error) {
    if (!isLanceError(error, "Unsupported")) throw error;
    await dataset.store.files?.syncTree(dataset.root);
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
  await syncFilesOfAll(dataset, [file], exists);
}

/** Syncs the files of some versions, like {@link syncFilesOf}; returns the content of the last one, undefined elsewhere than on a disk. */
async function syncFilesOfAll(
  dataset: DatasetRef,
  versions: readonly ManifestFile[],
  exist: boolean,
): Promise<VersionContent | undefined> {
  const { files } = dataset.store;
  const [first] = versions;
  if (files === undefined || first === undefined) return undefined;
  const { files: known, segments: indexed } = await readDurable(dataset, first.manifest.version);
  const synced = new Set<string>();
  const segments = new Set<string>();
  let content: VersionContent | undefined;
  for (const version of versions) {
    content = await contentOf(dataset, version);
    const fresh: string[] = [];
    for (const each of content.files) if (!known.has(each) && !synced.has(each)) fresh.push(each);
    for (const each of fresh) synced.add(each);
    for (const directory of blobDirectories(version.manifest, fresh))
      await syncUnlessFailed(dataset, [directory], () => files.syncTree(directory));
    for (const id of content.segments) if (!indexed.has(id)) segments.add(id);
  }
  if (segments.size > 0) {
    const syncIndices = () => files.syncTree(`${dataDirectory(dataset)}/_indices`);
    await syncUnlessFailed(dataset, [...segments], syncIndices);
  }
  const keys = exist ? versions.map(({ key }) => key) : [];
  await syncUnlessFailed(dataset, [...synced], () =>
    files.syncObjects([...synced, ...keys], dirname(dataset.root)),
  );
  return content;
}

/** Makes the names of branches durable, and the removal of a deleted branch's name. */
export async function syncBranches({ store, root }: DatasetRef): Promise<void> {
  await store.files?.syncTree(`${root}/_refs`);
  await store.files?.syncObjects([], root);
}

/**
 * Returns the content of a version whose files are durable, except for the given one; nothing if there is none. It may be a
 * later one: the versions before that need not be durable.
 */
async function readDurable(dataset: DatasetRef, version: bigint): Promise<VersionContent> {
  const durable = durableVersion(dataset);
  if (durable === undefined) return NOTHING;
  const known = durable === version ? undefined : durableContent(dataset);
  if (known !== undefined) return known;
  // Everything that this version shares with the one before it is durable, too.
  const file = await readVersion(dataset, durable === version ? version - 1n : durable).catch(ifGone);
  return file === undefined ? NOTHING : contentOf(dataset, file);
}

const NOTHING: VersionContent = { files: new Set(), segments: new Set() };

async function contentOf(dataset: DatasetRef, file: ManifestFile): Promise<VersionContent> {
  return {
    files: new Set(filesOf(dataset, file.manifest)),
    segments: new Set(await readSegmentIds(file)),
  };
}

function ifGone(error: unknown): undefined {
  if (!isLanceError(error, "TableVersionNotFound")) throw error;
}

/**
 * Shares work among concurrent callers, each of which brings an item. The items whose callers arrive while a batch runs
 * are the next batch.
 *
 * @param work gets the items of a batch; all of its callers get the result
 */
export function createSharedBatch<I, T>(
  work: (items: ReadonlySet<I>) => Promise<T>,
): (item: I) => Promise<T> {
  let waiting = new Set<I>();
  const workOnWaiting = createSharedCheck(() => {
    const items = waiting;
    waiting = new Set();
    return work(items);
  });
  return (item) => {
    waiting.add(item);
    return workOnWaiting();
  };
}
