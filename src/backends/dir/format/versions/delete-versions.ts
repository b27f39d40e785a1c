import { LanceError } from "../../../../namespace/errors.ts";
import { forEachOf } from "../../concurrency/for-each.ts";
import type { DatasetRef } from "../dataset.ts";
import { versionHintKey } from "../dataset.ts";
import { findVersions, newestOf } from "./version-files.ts";
import { writeVersionHint } from "./version-hint.ts";

/** A range of versions: from `start` to before `end`, or to the newest if `end` is negative. */
export interface VersionRange {
  readonly start: bigint;
  readonly end: bigint;
}

/** Maximum number of versions in bounded ranges, as in the directory catalog of Lance (contract 6.5). */
const MAX_VERSIONS = 1_000_000n;

/**
 * Deletes the manifests of versions; transactions and data remain. It also deletes the newest version: a table without
 * any manifest cannot be opened.
 *
 * @param isStillAsked whether the versions of these numbers are still the ones to delete; asked when it is known which
 *   manifests have the numbers, which a new version may get. Default: they are
 * @returns the number of deleted files
 * @throws LanceError InvalidInput if the bounded ranges span more than a million versions
 */
export async function deleteVersions(
  dataset: DatasetRef,
  ranges: readonly VersionRange[],
  isStillAsked = async () => true,
): Promise<number> {
  checkRanges(ranges);
  const isInRanges = createRangeCheck(ranges);
  const isDoomed = ({ version }: { readonly version: bigint }): boolean => isInRanges(version);
  const found = await findVersions(dataset);
  const doomed = found.filter(isDoomed);
  if (doomed.length === 0) return 0;

  const newestLeft = newestOf(found.filter((name) => !isDoomed(name)));
  // The next version that is made gets the number of one behind the newest that is left.
  const isReused = ({ version }: { readonly version: bigint }) =>
    newestLeft === undefined || version > newestLeft.version;
  const reused = await readTags(dataset, doomed.filter(isReused));
  if (!(await isStillAsked())) return 0;
  if (newestLeft) await writeVersionHint(dataset, newestLeft.version, { lasting: true });
  else await dataset.store.delete(versionHintKey(dataset));
  let deleted = 0;
  for (const found of doomed) {
    const { key } = found;
    const tag = reused.get(key);
    // A deletion that is late, or that follows a pause, does not delete a later version of the same name.
    if (tag !== undefined) deleted += Number(await dataset.store.deleteTagged(key, tag));
    else if (!isReused(found)) deleted += Number(await dataset.store.delete(key));
  }
  return deleted;
}

/** Number of manifests that are read concurrently. */
const READS = 16;

/** Returns the tags of manifests by their keys. */
async function readTags(
  { store }: DatasetRef,
  versions: readonly { readonly key: string }[],
): Promise<ReadonlyMap<string, string>> {
  const tags = new Map<string, string>();
  await forEachOf(versions, READS, async ({ key }) => {
    const found = await store.getTagged(key);
    if (found !== undefined) tags.set(key, found.tag);
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
