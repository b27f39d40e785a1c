import { LanceError } from "../../../namespace/errors.ts";
import { type DatasetRef, manifestName } from "../format/dataset.ts";
import { createStampMemory } from "../format/directory-stamp.ts";
import type { DirectoryStamp, FileFeatures, ObjectStore } from "../format/storage.ts";
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

/** Watches an open table. */
export interface Watch {
  /** Moves the table to its newest version. */
  moveOn(table: NativeTable): Promise<Movement>;
  /**
   * Whether a table that was opened after the watch began is at the version that was the newest one then. Default: a move, which waits for
   * nothing, finds out.
   */
  isAtFirst?(table: NativeTable): Promise<boolean>;
  /**
   * Whether the version that was known when the call began is the newest one still; it moves nothing, so that calls may overlap. Default: a
   * move, which waits for nothing, finds out.
   */
  isNewest?(): Promise<boolean>;
  /** The version at which the table was when it was moved last, or that it has made since; undefined before the first move. */
  readonly at: number | undefined;
  /** Notes that the table's handle has made a version and is at it, so that the next move need not ask the engine; see {@link Lease.noteMade}. */
  noteMade(version: number, begun: number): void;
}

/**
 * Starts to watch a table, before it is opened.
 *
 * @throws LanceError TableNotFound, if the location has no data
 */
export type Watcher = (location: string) => Promise<Watch>;

/**
 * How long the version that a handle has made counts as known, in milliseconds, from the begin of its commit. Another process may delete the
 * version and make another one of its number before this process looks at the first one's file, if this process is paused between the two.
 */
const OWN_VERSION_MS = 1_000;

/**
 * Distinguishes tables from others that took their place. The engine would stay at the old version if the new table
 * has fewer versions, and miss the replacement.
 */
export function createWatcher(store: ObjectStore): Watcher {
  const { files, versions } = store;
  return files === undefined || versions !== undefined
    ? watchVersions(store)
    : watchDirectories(store, files);
}

/**
 * A directory on a disk has an identity, and its stamp shows whether anything was added: while it is unchanged, the
 * engine need not check.
 */
function watchDirectories(store: ObjectStore, files: FileFeatures): Watcher {
  function stampOf(directory: string, version: number): string | undefined {
    const names = (["V2", "V1"] as const).map((scheme) => manifestName(BigInt(version), scheme));
    for (const name of names) {
      const stamp = files.fileStamp(`${directory}/${name}`);
      if (stamp !== undefined) return stamp;
    }
    return undefined;
  }
  function stampOfDirectory(directory: string): DirectoryStamp {
    const stamp = files.directoryStamp(directory);
    if (stamp === undefined) throw noData();
    return stamp;
  }
  return async (location) => {
    const dataset: DatasetRef = { store, root: store.keyOf(location) };
    const directory = `${dataset.root}/_versions`;
    const atOnce: DatasetRef = { ...dataset, store: listingAtOnce(store, files) };
    const { identity } = stampOfDirectory(directory);
    const stamps = createStampMemory();
    let at: number | undefined;
    let made: { readonly stamp: string | undefined; readonly since: number } | undefined;

    /** Whether the version that the handle has made is the newest one still, and its file the same. */
    async function isAtNewest(): Promise<boolean> {
      if (made?.stamp === undefined || performance.now() - made.since > OWN_VERSION_MS) return false;
      const [{ stamp }, own] = [made, at];
      const newest = await latestVersion(atOnce);
      return newest?.version === BigInt(own ?? -1) && files.fileStamp(newest.key) === stamp;
    }
    async function moveOn(table: NativeTable): Promise<Movement> {
      const before = performance.now();
      const seen = stampOfDirectory(directory);
      if (stamps.isUnchanged(seen)) return "same";
      if (seen.identity === identity && (await isAtNewest())) {
        stamps.note(seen, before);
        return "same";
      }
      made = undefined;
      const from = await table.version();
      const [moved] = await Promise.allSettled([table.checkoutLatest()]);
      // The engine fails when the directory of another table, which may be empty yet, has taken the place.
      if (stampOfDirectory(directory).identity !== identity) return "replaced";
      if (moved.status === "rejected") throw moved.reason;
      stamps.note(seen, before);
      // The engine notices another manifest of the same number, but stays at a newest version that was deleted.
      at = await table.version();
      if (stampOf(directory, at) === undefined) return "replaced";
      return at === from ? "made" : "moved";
    }
    return {
      moveOn,
      get at() {
        return at;
      },
      noteMade(version, begun) {
        at = version;
        const isThere = files.directoryStamp(directory)?.identity === identity;
        made = { stamp: isThere ? stampOf(directory, version) : undefined, since: begun };
      },
    };
  };
}

/** Maximum number of names that are listed while everything else waits, which takes 0.1 ms for these. */
const FEW_NAMES = 256;

/**
 * Lists the directory of a table's versions without a wait while it has few names: another thread takes longer to wake than to list them.
 *
 * @returns the store, for listings of a single directory
 */
function listingAtOnce(store: ObjectStore, files: FileFeatures): ObjectStore {
  let names = Number.POSITIVE_INFINITY;
  return {
    ...store,
    async *list(directory) {
      const found = names <= FEW_NAMES ? files.namesNow(directory) : undefined;
      names = 0;
      if (found !== undefined) {
        names = found.length;
        yield found.map((name) => ({ name }));
        return;
      }
      for await (const page of store.list(directory)) {
        names += page.length;
        yield page;
      }
    },
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
    let own: number | undefined;
    const moveOn = async (table: NativeTable): Promise<Movement> => {
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
      own = Number(now.version);
      return at === now.version ? "made" : "moved";
    };
    const first = known.version;
    return {
      moveOn,
      async isNewest() {
        const at = known;
        const { newest } = await latestVersionAnd(dataset, at);
        const now = newest && (await withTag(dataset, newest));
        return known === at && now?.version === at.version && now.eTag === at.eTag;
      },
      isAtFirst: async (table) => BigInt(await table.version()) === first,
      get at() {
        return own;
      },
      // The listing of the next move shows it, and waits for nothing else.
      noteMade(version) {
        own = version;
      },
    };
  };
}

type Tagged = VersionName & { readonly eTag: string | undefined };

async function withTag(dataset: DatasetRef, found: FoundVersion | undefined): Promise<Tagged> {
  if (found === undefined) throw noData();
  const { version, scheme, key, info } = found;
  const { eTag } = info ?? (await describeVersion(dataset, version));
  // A later check asks for the file again, so it needs no facts of this listing.
  return { version, scheme, key, eTag };
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
