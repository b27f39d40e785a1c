import { createSharedCheck } from "../concurrency/shared-check.ts";
import { type DatasetRef, manifestKey, type NamingScheme, versionsDirectory } from "../format/dataset.ts";
import { createStampMemory } from "../format/directory-stamp.ts";
import type { FileFeatures } from "../format/storage.ts";
import { latestVersion } from "../format/version-files.ts";

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
 * time without a look it lists the directory instead. On an object store it always looks for files, with two concurrent
 * requests.
 */
export function createFreshness(dataset: DatasetRef): Freshness {
  const { store } = dataset;
  const directory = versionsDirectory(dataset);
  let known: Known | undefined;
  let identity: bigint | undefined;
  const stamps = createStampMemory();
  let generation = 0;
  let sinceLook: (() => number) | undefined;

  const head = (): Head => ({ version: Number(known?.version ?? 0n), generation });

  function forget(): Head {
    if (known !== undefined) generation++;
    known = undefined;
    identity = undefined;
    stamps.forget();
    return head();
  }
  /** Looks for versions after the last known one; returns false if that version has disappeared. */
  async function advance(from: Known): Promise<boolean> {
    const keyOf = (version: bigint) => manifestKey(dataset, version, from.scheme);
    const [own, next] = await Promise.all([
      identityOf(keyOf(from.version)),
      identityOf(keyOf(from.version + 1n)),
    ]);
    if (own !== from.identity) return false;
    known = from;
    for (let identity = next; identity !== undefined; ) {
      known = { ...known, version: known.version + 1n, identity };
      identity = await identityOf(keyOf(known.version + 1n));
    }
    return true;
  }
  async function identityOf(key: string): Promise<string | undefined> {
    if (store.files !== undefined) return store.files.fileStamp(key);
    const info = await store.head(key);
    return info && (info.eTag ?? `${info.modifiedMillis}-${info.size}`);
  }
  /** Looks for versions newer than the known one, in the way that is sure to find them. */
  async function look(): Promise<Head> {
    const sinceThis = startStopwatch();
    const follows = sinceLook !== undefined && sinceLook() < FOLLOWS_MS;
    if (!follows || known === undefined || !(await advance(known))) await find();
    sinceLook = sinceThis;
    return head();
  }
  /** Whether the file of the last known version is unchanged. */
  async function isThere({ version, scheme, identity }: Known): Promise<boolean> {
    return (await identityOf(manifestKey(dataset, version, scheme))) === identity;
  }
  /** Finds the newest version by a listing. */
  async function find(): Promise<Head> {
    for (let look = 0; look < MAX_LOOKS; look++) {
      const newest = await latestVersion(dataset);
      if (newest === undefined) return forget();
      const identity = await identityOf(newest.key);
      if (identity === undefined) continue;
      if (known === undefined || known.version > newest.version || !(await isThere(known))) generation++;
      known = { version: newest.version, scheme: newest.scheme, identity };
      // This finds versions that were added after the listing had passed their names.
      if (await advance(known)) return head();
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
  return {
    head: createSharedCheck(async () => {
      if (store.files !== undefined) return lookOnDisk(store.files);
      return look();
    }),
    headNow() {
      const sinceThis = startStopwatch();
      const seen = store.files?.directoryStamp(directory);
      if (seen === undefined || !stamps.isUnchanged(seen)) return undefined;
      sinceLook = sinceThis;
      return head();
    },
  };
}

/**
 * Creates a check that is skipped if the last one began recently.
 *
 * @param maxStalenessMs maximum age of the last check, in milliseconds; 0 checks each time
 */
export function allowStaleness(check: () => Promise<void>, maxStalenessMs: number): () => Promise<void> {
  if (maxStalenessMs <= 0) return check;
  let checkedAt = Number.NEGATIVE_INFINITY;
  return async () => {
    const now = performance.now();
    if (now - checkedAt <= maxStalenessMs) return;
    await check();
    checkedAt = Math.max(checkedAt, now);
  };
}

/**
 * Starts a stopwatch.
 *
 * @returns the elapsed milliseconds by the clock of the process that counted more: the monotonic one does not advance
 *   while the machine sleeps, and the other one can be set back
 */
export function startStopwatch(): () => number {
  const [monotonic, wall] = [performance.now(), Date.now()];
  return () => Math.max(performance.now() - monotonic, Date.now() - wall);
}
