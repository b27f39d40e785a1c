import { forEachOf } from "../../concurrency/for-each.ts";
import type { DatasetRef } from "../dataset.ts";
import type { StorageClock } from "../storage-clock.ts";
import { type ExamineOptions, examine, examineAll, identityOf } from "./examine-versions.ts";
import { type Refs, readRefs } from "./refs/refs.ts";
import { type FoundVersion, findVersions } from "./version-files.ts";
import { writeVersionHint } from "./version-hint.ts";
import type { Sizes, VersionParts } from "./version-parts.ts";

/** Selection of the versions to delete. */
export interface PruneOptions extends ExamineOptions {
  /** Number of newest versions to keep, at least 1. */
  readonly keep: number;
  /** Minimum age of a version to be deleted, in milliseconds, by the clock of the storage. */
  readonly minAgeMs: number;
  /**
   * Minimum time since the next version replaced a version that is deleted, in milliseconds, by the clock of the storage:
   * a reader that began earlier may have found it as the newest. Default: 0.
   */
  readonly minReplacedMs?: number | undefined;
  /**
   * Length of the periods of which the newest version stays, in milliseconds, by the clock of the storage. Default: no
   * version stays for its time.
   */
  readonly keepEachMs?: number | undefined;
  readonly clock: StorageClock;
  /** Whether a version is being read, and must stay. It is also asked while versions are deleted. Default: none is. */
  readonly isRead?: ((version: bigint) => boolean) | undefined;
  /** Whether to report what would be deleted, without writing. Default: false. */
  readonly dryRun?: boolean | undefined;
  /** Ends the work early. */
  readonly signal: AbortSignal;
}

/** Result of pruning. */
export interface Pruned {
  readonly versions: number;
  /** Number of files and directories that only deleted versions needed. */
  readonly files: number;
  /** Size of the deleted manifests, data files and indices as far as the versions record it, in bytes. */
  readonly bytes: number;
  /** Whether there are versions that only their age protects, or the time since their replacement. */
  readonly hasYoung: boolean;
  /** Whether there are versions that only the time since their replacement protects. */
  readonly hasReplaced: boolean;
}

/** Number of manifests that are in memory while they are deleted. */
const BATCH = 32;

/** Number of directories that are deleted concurrently. */
const DELETIONS = 32;

/**
 * Deletes old versions, the oldest first, and then the files and indices that only they needed.
 *
 * The manifests are deleted before the files, so an interruption leaves only whole versions, and the engine's cleanup
 * or `gc` finds the remaining files. Every version that exists after that keeps its files, wherever it is in the
 * history.
 *
 * Versions that tags name, and those on which branches begin, are kept. Files that no version ever needed, for example
 * those of an interrupted commit, remain.
 *
 * @throws LanceError Unsupported for a table with a version that needs newer software
 */
export async function pruneVersions(dataset: DatasetRef, options: PruneOptions): Promise<Pruned> {
  const { store } = dataset;
  const found = (await findVersions(dataset)).sort((a, b) => (a.version < b.version ? -1 : 1));
  const newest = found.at(-1);
  if (newest === undefined || found.length <= options.keep) return nothing(false);
  const identityOfNewest = () => identityOf(dataset, { ...newest, info: undefined });
  const first = await identityOfNewest();
  const refs = await readRefs(dataset);
  const old = found.slice(0, -options.keep).filter(({ version }) => !refs.versions.has(version));
  // A branch whose first version is gone from here may need any file.
  const isWhole = [...refs.branchPoints].every((point) => found.some(({ version }) => version === point));
  if (old[0] === undefined || !isWhole) return nothing(false);
  const now = await options.clock.now();
  if ((await ageOf(dataset, old[0], now, options)).isYoung) return nothing(true);
  // An unknown kind of version may need any file, so all versions are examined before anything is deleted.
  await examineAll(dataset, found, options, () => {});
  const { doomed, bytes, files, directories, hasYoung, hasReplaced } = await chooseDoomed(
    dataset,
    found,
    refs,
    now,
    options,
  );
  // A tag may have been created meanwhile.
  if (doomed.length === 0 || (await readRefs(dataset)).text !== refs.text)
    return nothing(hasYoung, hasReplaced);

  const spare = (left: VersionParts): void => {
    for (const file of left.files.keys()) files.delete(file);
    for (const directory of left.directories.keys()) directories.delete(directory);
  };
  const pruned = (kept = 0): Pruned => ({
    versions: doomed.length - kept,
    files: files.size + directories.size,
    bytes: bytes + sum(files) + sum(directories),
    hasYoung,
    hasReplaced,
  });
  if (options.dryRun) {
    const left = found.filter((version) => !doomed.includes(version));
    await examineAll(dataset, left, { ...options, known: undefined }, spare);
    return pruned();
  }

  await writeVersionHint(dataset, newest.version, { lasting: true });
  // Numbers below a version that is still there are not used again.
  const isUnchanged = async () => first !== undefined && (await identityOfNewest()) === first;
  const kept = await deleteManifests(dataset, doomed, options, isUnchanged);
  // A version that was made meanwhile may need some of these files. Versions from here on cannot: a deleted version
  // cannot be restored, and a restoration that has begun looks afterwards whether its version is still there.
  await examineAll(dataset, await findVersions(dataset), options, spare);
  // A branch that began on a deleted version meanwhile needs its files, and the first manifest of the branch names them.
  const { versions: needed } = await readRefs(dataset);
  if (doomed.some(({ version }) => needed.has(version) && !kept.has(version))) {
    files.clear();
    directories.clear();
  }
  await store.deleteAll([...files.keys()]);
  await forEachOf(directories.keys(), DELETIONS, (directory) => store.deleteDirectory(directory));
  return pruned(kept.size);
}

/**
 * Deletes manifests, the oldest first, and restores those that tags or branches have come to name, or calls to read. The
 * caller that makes such a name looks for the version afterwards, so one of the two notices the other.
 *
 * @param isUnchanged whether the numbers still belong to the versions that were examined; others may delete the newest
 *   versions, and even the table, and use the numbers again
 * @returns the versions that it has restored or not deleted
 */
async function deleteManifests(
  dataset: DatasetRef,
  versions: readonly FoundVersion[],
  { isRead }: PruneOptions,
  isUnchanged: () => Promise<boolean>,
): Promise<ReadonlySet<bigint>> {
  const { store } = dataset;
  const kept = new Set<bigint>();
  for (let at = 0; at < versions.length; at += BATCH) {
    const batch = versions.slice(at, at + BATCH);
    const contents = await Promise.all(batch.map(({ key }) => store.get(key)));
    if (!(await isUnchanged())) {
      for (const { version } of versions.slice(at)) kept.add(version);
      break;
    }
    await store.deleteAll(batch.map(({ key }) => key));
    const { versions: needed } = await readRefs(dataset);
    for (const [i, { version, key }] of batch.entries()) {
      const content = contents[i];
      if (content === undefined || !(needed.has(version) || isRead?.(version))) continue;
      await store.putIfAbsent(key, content);
      kept.add(version);
    }
  }
  return kept;
}

function nothing(hasYoung: boolean, hasReplaced = false): Pruned {
  return { versions: 0, files: 0, bytes: 0, hasYoung, hasReplaced };
}

function sum(sizes: Sizes): number {
  return [...sizes.values()].reduce((total, bytes) => total + bytes, 0);
}

/** Returns the facts about a version's file, and whether its age protects it. */
async function ageOf(
  { store }: DatasetRef,
  { key, info }: FoundVersion,
  now: number,
  { minAgeMs }: PruneOptions,
): Promise<Age> {
  const found = info ?? (await store.head(key));
  if (found === undefined) return { size: 0, modifiedMillis: now, isYoung: false };
  const { size, modifiedMillis } = found;
  return { size, modifiedMillis, isYoung: now - modifiedMillis < minAgeMs };
}

/** The facts about a version's file, and whether its age protects it. */
interface Age {
  /** In bytes. */
  readonly size: number;
  /** In milliseconds since 1970. */
  readonly modifiedMillis: number;
  readonly isYoung: boolean;
}

/** The versions to delete, and everything that they need. */
interface Doomed {
  readonly doomed: readonly FoundVersion[];
  /** Size of the manifests, in bytes. */
  readonly bytes: number;
  readonly files: Map<string, number>;
  readonly directories: Map<string, number>;
  readonly hasYoung: boolean;
  readonly hasReplaced: boolean;
}

/** @param found all versions, ascending */
async function chooseDoomed(
  dataset: DatasetRef,
  found: readonly FoundVersion[],
  refs: Refs,
  now: number,
  options: PruneOptions,
): Promise<Doomed> {
  const doomed: FoundVersion[] = [];
  const files = new Map<string, number>();
  const directories = new Map<string, number>();
  const { keep, keepEachMs = Number.POSITIVE_INFINITY, minReplacedMs = 0 } = options;
  const periodOf = ({ modifiedMillis }: Age) => Math.floor(modifiedMillis / keepEachMs);
  let [bytes, hasYoung, hasReplaced] = [0, false, false];
  let next: Age | undefined;
  for (const [at, version] of found.slice(0, -keep).entries()) {
    if (options.signal.aborted) break;
    const own = next ?? (await ageOf(dataset, version, now, options));
    const successor = await ageOf(dataset, found[at + 1] as FoundVersion, now, options);
    next = successor;
    if (refs.versions.has(version.version) || options.isRead?.(version.version)) continue;
    const known = await examine(dataset, version, options);
    if (known === undefined || !known.mayGo) continue;
    if (own.isYoung || now - successor.modifiedMillis < minReplacedMs) {
      hasYoung = true;
      hasReplaced = !own.isYoung;
      break;
    }
    if (periodOf(own) !== periodOf(successor)) continue;
    doomed.push(version);
    bytes += own.size;
    for (const [file, fileBytes] of known.files) files.set(file, fileBytes);
    for (const [directory, directoryBytes] of known.directories) directories.set(directory, directoryBytes);
  }
  return { doomed, bytes, files, directories, hasYoung, hasReplaced };
}
