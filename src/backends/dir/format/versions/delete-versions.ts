import { LanceError } from "../../../../namespace/errors.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { DatasetRef } from "../dataset.ts";
import { versionHintKey } from "../dataset.ts";
import { findVersions, latestVersion, newestOf, type VersionName } from "./version-files.ts";
import { writeVersionHint } from "./version-hint.ts";

/** A range of versions: from `start` to before `end`, or to the newest if `end` is negative. */
export interface VersionRange {
  readonly start: bigint;
  readonly end: bigint;
}

/** Maximum number of versions in bounded ranges, as in the directory catalog of Lance (contract 6.5). */
const MAX_VERSIONS = 1_000_000n;

/** Checks that a deletion makes right before it begins. */
export interface DeletionChecks {
  /**
   * Whether the versions of these numbers are still the ones to delete; asked when it is known which manifests have the
   * numbers, which a new version may get. Default: they are
   */
  readonly isStillAsked?: () => Promise<boolean>;
  /** Whether a version that is behind all that stay is one to delete. Default: it is */
  readonly isMeant?: (version: bigint, bytes: Uint8Array) => boolean;
}

/**
 * Deletes the manifests of versions, the newest first; transactions and data remain. It also deletes the newest version: a
 * table without any manifest cannot be opened.
 *
 * @returns the number of deleted files
 * @throws LanceError InvalidInput if the bounded ranges span more than a million versions
 */
export async function deleteVersions(
  dataset: DatasetRef,
  ranges: readonly VersionRange[],
  { isStillAsked = async () => true, isMeant = () => true }: DeletionChecks = {},
): Promise<number> {
  checkRanges(ranges);
  const found = await findVersions(dataset);
  const { doomed, last, kept } = selectVersions(found, ranges);
  if (doomed.length === 0) return 0;

  const tags = await readTags(dataset, last, isMeant);
  const newest = newestOf([...kept, ...last.filter(({ key }) => !tags.has(key))]);
  if (!(await isStillAsked())) return 0;
  if (newest) await writeVersionHint(dataset, newest.version, { lasting: true });
  else await dataset.store.delete(versionHintKey(dataset));
  const isLast = new Set(last);
  let deleted = 0;
  for (const found of doomed) {
    const { key } = found;
    const tag = tags.get(key);
    // A deletion that is late, or that follows a pause, does not delete a later version of the same name.
    if (tag !== undefined) deleted += Number(await dataset.store.deleteTagged(key, tag));
    else if (!isLast.has(found)) deleted += Number(await dataset.store.delete(key));
  }
  return deleted;
}

/** Whether ranges reach the newest version, or later ones. */
export async function reachNewest(dataset: DatasetRef, ranges: readonly VersionRange[]): Promise<boolean> {
  if (ranges.some(({ end }) => end < 0n)) return true;
  const { version = 0n } = (await latestVersion(dataset)) ?? {};
  return ranges.some(({ end }) => end > version);
}

/** Selects the versions to delete, the newest first. */
export function selectVersions<T extends VersionName>(
  found: readonly T[],
  ranges: readonly VersionRange[],
): {
  readonly doomed: readonly T[];
  /** Those of them that are newer than all that stay: the next versions that are made get their numbers. */
  readonly last: readonly T[];
  readonly kept: readonly T[];
} {
  const isDoomed = createRangeCheck(ranges);
  const doomed = found
    .filter(({ version }) => isDoomed(version))
    .sort((a, b) => (a.version > b.version ? -1 : 1));
  const kept = found.filter(({ version }) => !isDoomed(version));
  const newestKept = newestOf(kept);
  const last = doomed.filter(({ version }) => newestKept === undefined || version > newestKept.version);
  return { doomed, last, kept };
}

/** Number of manifests that are read concurrently. */
const READS = 16;

/** Returns the tags of the manifests to delete, by their keys. */
async function readTags(
  { store }: DatasetRef,
  versions: readonly VersionName[],
  isMeant: (version: bigint, bytes: Uint8Array) => boolean,
): Promise<ReadonlyMap<string, string>> {
  const tags = new Map<string, string>();
  await forEachOf(versions, READS, async ({ version, key }) => {
    const found = await store.getTagged(key);
    if (found !== undefined && isMeant(version, found.bytes)) tags.set(key, found.tag);
  });
  return tags;
}

/** The end of a range without a bound: every version is below it. */
const NO_END = 1n << 63n;

/** Creates the check whether a version is in one of the ranges; there may be thousands of both. */
export function createRangeCheck(ranges: readonly VersionRange[]): (version: bigint) => boolean {
  const sorted = ranges.toSorted((a, b) => (a.start < b.start ? -1 : 1));
  let furthest = 0n;
  const ends = sorted.map(({ end }) => {
    const own = end < 0n ? NO_END : end;
    if (own > furthest) furthest = own;
    return furthest;
  });
  return (version) => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sorted[middle] as VersionRange).start <= version) low = middle + 1;
      else high = middle;
    }
    // Of the ranges that start at the version or before it, the one that ends last decides.
    return low > 0 && version < (ends[low - 1] as bigint);
  };
}

/** @throws LanceError InvalidInput if the bounded ranges span more than a million versions */
export function checkRanges(ranges: readonly VersionRange[]): void {
  const spans = ranges.map(({ start, end }) => (end > start ? end - start : 0n));
  const requested = spans.reduce((sum, span) => sum + span, 0n);
  if (requested > MAX_VERSIONS) {
    throw new LanceError(
      "InvalidInput",
      `${requested} versions are too many at once; the most are ${MAX_VERSIONS}`,
    );
  }
}
