import { LanceError } from "../../../namespace/errors.ts";
import type { DatasetRef } from "../format/dataset.ts";
import { createStampMemory } from "../format/directory-stamp.ts";
import type { FileFeatures, ObjectStore } from "../format/storage.ts";
import { describeVersion, latestVersion, type VersionName } from "../format/version-files.ts";
import type { NativeTable } from "./native.ts";

/** What became of an opened table: nothing, perhaps a newer version, or another table is at its location. */
export type Movement = "same" | "moved" | "replaced";

/**
 * Begins to watch a table, before it is opened.
 *
 * @returns what moves the opened table to its newest version
 * @throws LanceError TableNotFound, when there is no data at the location
 */
export type Watcher = (location: string) => Promise<(table: NativeTable) => Promise<Movement>>;

/**
 * Tells tables from others that took their place. The engine would stay at the old version when the new table has
 * fewer versions, and so miss that it is another.
 */
export function createWatcher(store: ObjectStore): Watcher {
  const { files } = store;
  return files === undefined ? watchVersions(store) : watchDirectories(store, files);
}

/**
 * A directory on a disk has an identity, and its stamp says whether anything came into it: as long as it is the same,
 * the engine need not look.
 */
function watchDirectories(store: ObjectStore, files: FileFeatures): Watcher {
  async function find(directory: string): Promise<string> {
    const identity = await files.identityOf(directory);
    if (identity === undefined) throw noData();
    return identity;
  }
  return async (location) => {
    const directory = `${store.keyOf(location)}/_versions`;
    const identity = await find(directory);
    const stamps = createStampMemory();
    return async (table) => {
      const before = performance.now();
      const seen = files.directoryStamp(directory);
      if (seen === undefined) throw noData();
      if (stamps.isUnchanged(seen)) return "same";
      // Both are waited for, whatever comes of one: a table cannot be closed while a call of it runs.
      const [now, moved] = await Promise.allSettled([find(directory), table.checkoutLatest()]);
      if (now.status === "rejected") throw now.reason;
      if (moved.status === "rejected") throw moved.reason;
      stamps.note(seen, before);
      return now.value === identity ? "moved" : "replaced";
    };
  };
}

/**
 * Elsewhere the newest manifest tells: one listing, often of one name, says whether the engine has to look at all.
 * Two manifests of one number are told apart by their tags, since each has the id of its own transaction.
 */
function watchVersions(store: ObjectStore): Watcher {
  return async (location) => {
    const dataset: DatasetRef = { store, root: store.keyOf(location) };
    let known = await newestOf(dataset);
    return async (table) => {
      const now = await newestOf(dataset);
      if (now.version === known.version) return now.eTag === known.eTag ? "same" : "replaced";
      // An older version that is no longer there may have been cleaned up: opening the table again is right too.
      if (now.version < known.version || (await eTagOf(dataset, known)) !== known.eTag) {
        return "replaced";
      }
      await table.checkoutLatest();
      known = now;
      return "moved";
    };
  };
}

type Newest = VersionName & { readonly eTag: string | undefined };

async function newestOf(dataset: DatasetRef): Promise<Newest> {
  const found = await latestVersion(dataset);
  if (found === undefined) throw noData();
  const { eTag } = found.info ?? (await describeVersion(dataset, found.version));
  return { ...found, eTag };
}

async function eTagOf({ store }: DatasetRef, { key }: VersionName): Promise<string | undefined> {
  return (await store.head(key))?.eTag;
}

function noData(): LanceError {
  return new LanceError("TableNotFound", "the table has no data");
}
