import { startStopwatch } from "../../../../runtime/clocks.ts";
import { createSharedCheck } from "../../../../runtime/promises.ts";
import { type DatasetRef, manifestKey, type NamingScheme, versionsDirectory } from "../../format/dataset.ts";
import { createStampMemory } from "../../format/directory-stamp.ts";
import type { FileFeatures, ObjectInfo } from "../../format/storage.ts";
import { latestVersion, listsNewestFirst, newestVersions } from "../../format/versions/version-files.ts";

/** Newest state of the storage. */
export interface Head {
  /** Newest version; 0 while there is none. */
  readonly version: number;
  /**
   * Number that changes whenever version numbers lose their meaning: the table was deleted and created again, its
   * newest version was removed, or so much time has passed that the last known version is gone. Data that was read
   * under another number proves nothing about this one.
   */
  readonly generation: number;
}

/** The newest version at the last look. */
interface Known {
  readonly version: bigint;
  readonly scheme: NamingScheme;
  /** Distinguishes its file from another one of that name. */
  readonly identity: string;
}

/**
 * A check of a dataset's newest version, which sees every commit that finished before the check began, in any process.
 */
export interface Freshness {
  head(): Promise<Head>;
  /**
   * Answers synchronously if a single look at the disk proves that nothing has changed; returns undefined otherwise.
   */
  headNow(): Head | undefined;
  /**
   * Checks whether a head that was seen before is still the newest. Calls may overlap, because they look for no further
   * versions. Only object stores need it.
   *
   * @param options Default: no version may follow, and the check asks for single files
   * @returns undefined if only {@link Freshness.head} can tell; otherwise false if there is anything new
   */
  readonly confirm?: (head: Head, options?: ConfirmOptions) => Promise<boolean> | undefined;
  /**
   * Notes that this process has made a version, so that the next check looks for the one after it at once.
   *
   * @param version the one after the newest that is known here
   */
  noteMade(version: number): void;
}

/** Options of {@link Freshness.confirm}. */
export interface ConfirmOptions {
  /** Whether the version after the head may exist, because this process is making it. Default: false. */
  readonly mayBeFollowed?: boolean;
  /**
   * Whether a single listing may replace the two or three requests for files. Services charge about six times as much for it, and may take longer
   * to answer, so it is for calls that wait for a listing anyway. Default: false.
   */
  readonly byListing?: boolean;
}

/**
 * How long after a look the next one asks only for the numbers after the known version, in milliseconds. Later some of
 * these versions may have been pruned, which happens only to versions several times as old.
 */
const FOLLOWS_MS = 3_000;

/** Maximum number of looks while versions are added and removed. */
const MAX_LOOKS = 10;

/**
 * Creates the check of a dataset.
 *
 * On a disk it reads the stamp of the directory of versions, a synchronous call of microseconds. If the stamp is
 * unchanged and was old enough when it was first seen, nothing has changed. Otherwise the check looks for the files of
 * the versions after the last known one: writers count up without gaps, and do not remove young versions. After some
 * time without a look it lists the directory instead. On an object store it always looks for files, with two or three
 * concurrent requests.
 */
export function createFreshness(dataset: DatasetRef): Freshness {
  const { store } = dataset;
  const directory = versionsDirectory(dataset);
  let known: Known | undefined;
  let identity: bigint | undefined;
  const stamps = createStampMemory();
  let generation = 0;
  let sinceLook: (() => number) | undefined;
  /** The newest version that this process has made. */
  let made = 0n;

  const head = (): Head => ({ version: Number(known?.version ?? 0n), generation });

  function forget(): Head {
    if (known !== undefined) generation++;
    known = undefined;
    made = 0n;
    identity = undefined;
    stamps.forget();
    return head();
  }
  /**
   * Looks at a known version, at the newest one that this process has made since, and at the one after both.
   *
   * @param byListing see {@link ConfirmOptions.byListing}; a listing that does not reach back to the known version counts as its disappearance
   * @returns the newer of the two, and the identity of the one after it; undefined if one of them has disappeared
   */
  async function lookAfter(
    from: Known,
    byListing = false,
  ): Promise<{ readonly at: Known; readonly next: string | undefined } | undefined> {
    const own = made > from.version ? made : undefined;
    const isListed = byListing && listsNewestFirst(dataset, from);
    const identify = isListed ? await identitiesListed() : identityOfVersion(from.scheme);
    const [same, ours, next] = await Promise.all([
      identify(from.version),
      own === undefined ? undefined : identify(own),
      identify((own ?? from.version) + 1n),
    ]);
    if (same !== from.identity) return undefined;
    if (own === undefined) return { at: from, next };
    return ours === undefined ? undefined : { at: { ...from, version: own, identity: ours }, next };
  }
  /** Looks for versions after the last known one; returns false if that version has disappeared. */
  async function advance(from: Known): Promise<boolean> {
    const found = await lookAfter(from);
    if (found === undefined) return false;
    known = found.at;
    for (let { next } = found; next !== undefined; ) {
      known = { ...known, version: known.version + 1n, identity: next };
      next = await identityOf(manifestKey(dataset, known.version + 1n, from.scheme));
    }
    return true;
  }
  /** Whether so little time has passed since a look that versions after the known one cannot have been pruned. */
  const follows = () => sinceLook !== undefined && sinceLook() < FOLLOWS_MS;
  function noteLook(sinceThis: () => number): void {
    if (sinceLook === undefined || sinceThis() < sinceLook()) sinceLook = sinceThis;
  }
  async function identityOf(key: string): Promise<string | undefined> {
    if (store.files !== undefined) return store.files.fileStamp(key);
    const info = await store.head(key);
    return info && identityIn(info);
  }
  const identityOfVersion = (scheme: NamingScheme) => (version: bigint) =>
    identityOf(manifestKey(dataset, version, scheme));
  async function identitiesListed(): Promise<(version: bigint) => string | undefined> {
    const found = await newestVersions(dataset);
    const identities = found.map(({ version, info }) => [version, info && identityIn(info)] as const);
    const listed = new Map(identities);
    return (version) => listed.get(version);
  }
  /** Looks for versions newer than the known one, in the way that is sure to find them. */
  async function look(): Promise<Head> {
    const sinceThis = startStopwatch();
    if (!follows() || known === undefined || !(await advance(known))) await find();
    noteLook(sinceThis);
    return head();
  }
  /** Whether a newest version continues the history of the known one. */
  async function continues(before: Known | undefined, newest: Known): Promise<boolean> {
    if (before === undefined || before.version > newest.version) return false;
    if (before.version === newest.version) return before.identity === newest.identity;
    return (await identityOf(manifestKey(dataset, before.version, before.scheme))) === before.identity;
  }
  /** Finds the newest version by a listing. */
  async function find(): Promise<Head> {
    for (let look = 0; look < MAX_LOOKS; look++) {
      const found = await latestVersion(dataset);
      if (found === undefined) return forget();
      const { version, scheme, info } = found;
      const isListed = store.files === undefined && info !== undefined;
      const identity = isListed ? identityIn(info) : await identityOf(found.key);
      if (identity === undefined) continue;
      const newest = { version, scheme, identity };
      made = 0n;
      // The second one finds versions that were added after the listing had passed their names.
      const [isSame, isThere] = await Promise.all([continues(known, newest), advance(newest)]);
      if (!isSame) generation++;
      if (isThere) return head();
    }
    throw new Error(`${directory} changes faster than it can be read`);
  }
  async function lookOnDisk(files: FileFeatures): Promise<Head> {
    const before = performance.now();
    const sinceThis = startStopwatch();
    const seen = files.directoryStamp(directory);
    if (seen === undefined) return forget();
    if (stamps.isUnchanged(seen)) {
      sinceLook = sinceThis;
      return head();
    }
    if (seen.identity === identity) await look();
    else await find();
    identity = seen.identity;
    stamps.note(seen, before);
    return head();
  }
  function confirm(
    { version, generation: expected }: Head,
    { mayBeFollowed = false, byListing = false }: ConfirmOptions = {},
  ): Promise<boolean> | undefined {
    const from = known;
    if (from === undefined || !follows()) return undefined;
    const newest = made > from.version ? made : from.version;
    if (newest !== BigInt(version) || generation !== expected) return undefined;
    const sinceThis = startStopwatch();
    return lookAfter(from, byListing).then((found) => {
      // A version that was made meanwhile is newer than the confirmed one.
      if (found === undefined || (found.next !== undefined && !mayBeFollowed)) return false;
      if (known === from) known = found.at;
      noteLook(sinceThis);
      return true;
    });
  }
  return {
    head: createSharedCheck(async () => {
      if (store.files !== undefined) return lookOnDisk(store.files);
      return look();
    }),
    ...(store.files === undefined && { confirm }),
    noteMade(version) {
      made = BigInt(version);
    },
    headNow() {
      const sinceThis = startStopwatch();
      const seen = store.files?.directoryStamp(directory);
      if (seen === undefined || !stamps.isUnchanged(seen)) return undefined;
      sinceLook = sinceThis;
      return head();
    },
  };
}

/** Distinguishes an object from another one under its name. */
function identityIn({ eTag, modifiedMillis, size }: ObjectInfo): string {
  return eTag ?? `${modifiedMillis}-${size}`;
}
