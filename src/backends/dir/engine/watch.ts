import { LanceError } from "../../../namespace/errors.ts";
import { type DatasetRef, manifestName } from "../format/dataset.ts";
import { createStampMemory } from "../format/directory-stamp.ts";
import type { FileFeatures, ObjectStore } from "../format/storage.ts";
import {
  describeVersion,
  type FoundVersion,
  latestVersion,
  latestVersionAnd,
  type VersionName,
} from "../format/versions/version-files.ts";
import type { NativeTable } from "./native/native.ts";

/**
 * State of an open table: unchanged, a newer version that its own handle made, perhaps a newer version, or replaced by another table at
 * its location.
 */
export type Movement = "same" | "made" | "moved" | "replaced";

/**
 * Starts to watch a table, before it is opened.
 *
 * @returns the function that moves the opened table to its newest version
 * @throws LanceError TableNotFound, if the location has no data
 */
export type Watcher = (location: string) => Promise<(table: NativeTable) => Promise<Movement>>;

/**
 * Distinguishes tables from others that took their place. The engine would stay at the old version if the new table
 * has fewer versions, and miss the replacement.
 */
export function createWatcher(store: ObjectStore): Watcher {
  const { files } = store;
  return files === undefined ? watchVersions(store) : watchDirectories(store, files);
}

/**
 * A directory on a disk has an identity, and its stamp shows whether anything was added: while it is unchanged, the
 * engine need not check.
 */
function watchDirectories(store: ObjectStore, files: FileFeatures): Watcher {
  async function find(directory: string): Promise<string> {
    const identity = await files.identityOf(directory);
    if (identity === undefined) throw noData();
    return identity;
  }
  function hasVersion(directory: string, version: bigint): boolean {
    const names = (["V2", "V1"] as const).map((scheme) => manifestName(version, scheme));
    return names.some((name) => files.fileStamp(`${directory}/${name}`) !== undefined);
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
      const at = await table.version();
      // Both must end, whatever their results: a table cannot be closed while a call of it runs.
      const [now, moved] = await Promise.allSettled([find(directory), table.checkoutLatest()]);
      if (now.status === "rejected") throw now.reason;
      // The engine fails when the directory of another table, which may be empty yet, has taken the place.
      if (now.value !== identity) return "replaced";
      if (moved.status === "rejected") throw moved.reason;
      stamps.note(seen, before);
      // The engine notices another manifest of the same number, but stays at a newest version that was deleted.
      const version = await table.version();
      if (!hasVersion(directory, BigInt(version))) return "replaced";
      return version === at ? "made" : "moved";
    };
  };
}

/**
 * Elsewhere the newest manifest shows it: a listing, often of a single name, says whether the engine must check at
 * all. Tags distinguish two manifests with the same number, since each has the id of its own transaction.
 */
function watchVersions(store: ObjectStore): Watcher {
  return async (location) => {
    const dataset: DatasetRef = { store, root: store.keyOf(location) };
    let known = await withTag(dataset, await latestVersion(dataset));
    return async (table) => {
      // The handle answers at once, so the listing need not wait for it; were it late, the table would be opened again. A version that
      // it has made itself may be deleted by now, and its number another one's.
      const version = table.version().then(BigInt);
      const checked = version.then((at) => (at === known.version ? undefined : table.checkoutLatest()));
      const [listed, moved] = await Promise.allSettled([latestVersionAnd(dataset, known), checked]);
      if (listed.status === "rejected") throw listed.reason;
      const at = await version;
      const { newest, earlier } = listed.value;
      // A version that the handle has made or seen before the listing is missing there only if it was deleted.
      const now = await withTag(dataset, newest);
      if (now.version < at) return "replaced";
      if (now.version === known.version) return now.eTag === known.eTag ? "same" : "replaced";
      // An older version that is missing may have been cleaned up: opening the table again is also correct then.
      if (now.version < known.version || (await eTagOf(dataset, earlier ?? known)) !== known.eTag) {
        return "replaced";
      }
      if (moved.status === "rejected") throw moved.reason;
      if (BigInt(await table.version()) < now.version) await table.checkoutLatest();
      known = now;
      return at === now.version ? "made" : "moved";
    };
  };
}

type Tagged = VersionName & { readonly eTag: string | undefined };

async function withTag(dataset: DatasetRef, found: FoundVersion | undefined): Promise<Tagged> {
  if (found === undefined) throw noData();
  const { eTag } = found.info ?? (await describeVersion(dataset, found.version));
  return { ...found, eTag };
}

async function eTagOf(
  { store }: DatasetRef,
  { key, info }: VersionName & Partial<Pick<FoundVersion, "info">>,
): Promise<string | undefined> {
  return (info ?? (await store.head(key)))?.eTag;
}

function noData(): LanceError {
  return new LanceError("TableNotFound", "the table has no data");
}
