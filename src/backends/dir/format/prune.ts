import type { DataFragment, Manifest } from "../../../gen/lance/format/table_pb.ts";
import type { DatasetRef } from "./dataset.ts";
import { dataDirectory, refsDirectory, transactionKey } from "./dataset.ts";
import { deletionKey } from "./deletion-file.ts";
import { checkWritable } from "./manifest.ts";
import { readManifestFile } from "./manifest-file.ts";
import { listNames } from "./storage.ts";
import type { StorageClock } from "./storage-clock.ts";
import { type FoundVersion, findVersions } from "./version-files.ts";
import { writeVersionHint } from "./version-hint.ts";

/** Selection of the versions to delete. */
export interface PruneOptions {
  /** Number of newest versions to keep. */
  readonly keep: number;
  /** Minimum age of a version to be deleted, in milliseconds, by the clock of the storage. */
  readonly minAgeMs: number;
  readonly clock: StorageClock;
  /** Whether a version may be deleted whose age and position allow it. */
  readonly mayGo: (manifest: Manifest) => boolean;
  /** Results of earlier runs; each version is read once. */
  readonly known: KnownVersions;
  /** Ends the work early. */
  readonly signal: AbortSignal;
}

/** Facts about versions, by the identity of their files. */
export type KnownVersions = Map<string, KnownVersion>;

interface KnownVersion {
  readonly mayGo: boolean;
  /** Files that the version needs. */
  readonly files: readonly string[];
}

/** Result of pruning. */
export interface Pruned {
  readonly versions: number;
  /** Whether there are versions that only their age protects. */
  readonly hasYoung: boolean;
}

/** Number of versions that are read concurrently. */
const READS = 16;

/**
 * Deletes old versions, the oldest first, and then the files that only they needed.
 *
 * The manifests are deleted before the files, so an interruption leaves only whole versions, and `gc` finds the
 * remaining files. Every version that exists after that keeps its files, wherever it is in the history.
 *
 * A table with tags or branches is not changed. Files that no version ever needed, for example those of an interrupted
 * commit, remain.
 *
 * @throws LanceError Unsupported for a table with a version that needs newer software
 */
export async function pruneVersions(dataset: DatasetRef, options: PruneOptions): Promise<Pruned> {
  if (await hasRefs(dataset)) return { versions: 0, hasYoung: false };
  const { store } = dataset;
  const found = (await findVersions(dataset)).sort((a, b) => (a.version < b.version ? -1 : 1));
  const newest = found.at(-1);
  if (newest === undefined || found.length <= options.keep) return { versions: 0, hasYoung: false };
  // An unknown kind of version may need any file, so all versions are examined before anything is deleted.
  await examineAll(dataset, found, options);
  const { doomed, hasYoung } = await chooseDoomed(dataset, found.slice(0, -options.keep), options);
  // A tag may have been created meanwhile.
  if (doomed.size === 0 || (await hasRefs(dataset))) return { versions: 0, hasYoung };

  await writeVersionHint(dataset, newest.version, { lasting: true });
  for (const { key } of doomed.keys()) await store.delete(key);
  // A version that was made meanwhile may need some of these files. Versions from here on cannot, because a deleted
  // version cannot be restored.
  const left = await examineAll(dataset, await findVersions(dataset), options);
  const needed = new Set(left.flatMap(({ files }) => files));
  for (const file of new Set([...doomed.values()].flatMap(({ files }) => files))) {
    if (!needed.has(file)) await store.delete(file);
  }
  return { versions: doomed.size, hasYoung };
}

async function chooseDoomed(
  dataset: DatasetRef,
  old: readonly FoundVersion[],
  options: PruneOptions,
): Promise<{ readonly doomed: ReadonlyMap<FoundVersion, KnownVersion>; readonly hasYoung: boolean }> {
  const doomed = new Map<FoundVersion, KnownVersion>();
  const now = await options.clock.now();
  for (const version of old) {
    if (options.signal.aborted) break;
    const known = await examine(dataset, version, options);
    if (known === undefined || !known.mayGo) continue;
    const info = await dataset.store.head(version.key);
    if (info !== undefined && now - info.modifiedMillis < options.minAgeMs) return { doomed, hasYoung: true };
    doomed.set(version, known);
  }
  return { doomed, hasYoung: false };
}

/** Whether a table has tags or branches, which refer to versions. */
export async function hasRefs(dataset: DatasetRef): Promise<boolean> {
  for (const kind of ["tags", "branches"] as const) {
    if ((await listNames(dataset.store, refsDirectory(dataset, kind))).length > 0) return true;
  }
  return false;
}

/** Examines all existing versions, and forgets the others. */
async function examineAll(
  dataset: DatasetRef,
  versions: readonly FoundVersion[],
  options: PruneOptions,
): Promise<readonly KnownVersion[]> {
  const current: KnownVersions = new Map();
  for (let at = 0; at < versions.length; at += READS) {
    const some = versions.slice(at, at + READS);
    await Promise.all(some.map((version) => examine(dataset, version, options, current)));
  }
  options.known.clear();
  for (const [identity, entry] of current) options.known.set(identity, entry);
  return [...current.values()];
}

/** Examines a version; returns undefined if it has been deleted. */
async function examine(
  dataset: DatasetRef,
  version: FoundVersion,
  { known, mayGo }: PruneOptions,
  into: KnownVersions = known,
): Promise<KnownVersion | undefined> {
  const identity = await identityOf(dataset, version);
  if (identity === undefined) return undefined;
  let entry = known.get(identity);
  if (entry === undefined) {
    const manifest = (await readManifestFile(dataset.store, version.key))?.manifest;
    if (manifest === undefined) return undefined;
    checkWritable(manifest);
    entry = { mayGo: mayGo(manifest), files: filesOf(dataset, manifest) };
  }
  into.set(identity, entry);
  return entry;
}

/** Identifies the file of a version among others that have had its name. */
async function identityOf({ store }: DatasetRef, { key, info }: FoundVersion): Promise<string | undefined> {
  if (store.files !== undefined) {
    const stamp = store.files.fileStamp(key);
    return stamp && `${key} ${stamp}`;
  }
  const found = info?.eTag === undefined ? await store.head(key) : info;
  return found && `${key} ${found.eTag} ${found.modifiedMillis}`;
}

/** Returns the keys of the files that a version needs, except for its indices. */
export function filesOf(dataset: DatasetRef, { fragments, transactionFile }: Manifest): string[] {
  const own = transactionFile === "" ? [] : [transactionKey(dataset, transactionFile)];
  return [...own, ...fragments.flatMap((fragment) => fragmentFiles(dataset, fragment))];
}

function fragmentFiles(dataset: DatasetRef, fragment: DataFragment): string[] {
  const files = fragment.files.map(({ path }) => `${dataDirectory(dataset)}/data/${path}`);
  const deletions = deletionKey(dataset, fragment);
  return deletions === undefined ? files : [...files, deletions];
}
