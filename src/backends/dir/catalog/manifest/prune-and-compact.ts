import type { Logger } from "pino";
import type { DataFragment, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { FLAG_TABLE_CONFIG, largestFragmentId } from "../../format/files/manifest.ts";
import type { StorageClock } from "../../format/storage-clock.ts";
import type { KnownVersions } from "../../format/versions/examine-versions.ts";
import { pruneVersions } from "../../format/versions/prune.ts";
import type { Chore } from "./background.ts";
import { isPlainFragment, rowFormatOf } from "./commit-base.ts";
import { liveRows, REWRITE_BELOW_ROWS } from "./commit-plan.ts";

/** Number of the newest versions of the manifest that are kept. */
export const KEEP_VERSIONS = 20;

/**
 * Minimum age of a version before it is pruned, and minimum time since another has replaced it, in milliseconds: a reader that looks for new versions at least this
 * often finds the next number after its own. Object stores need longer, because their clocks may differ from the
 * servers'.
 */
const MIN_AGE_MS = { disk: 15_000, objectStore: 120_000 } as const;

/** Interval between checks of versions that only their age protects, in milliseconds. */
const PRUNE_PAUSE_MS = 5_000;

/**
 * Prunes old versions of the manifest table.
 *
 * @param isOptimized whether another process has the engine join fragments, which would miss the changes in pruned versions
 */
export function createPruning(
  dataset: DatasetRef,
  clock: StorageClock,
  isOptimized: () => Promise<boolean>,
): Chore {
  const known: KnownVersions = new Map();
  const minAgeMs = dataset.store.files === undefined ? MIN_AGE_MS.objectStore : MIN_AGE_MS.disk;
  return {
    name: "prune",
    async run(signal) {
      if (await isOptimized()) return PRUNE_PAUSE_MS;
      const ages = { minAgeMs, minReplacedMs: minAgeMs };
      const options = { keep: KEEP_VERSIONS, ...ages, clock, mayGo: mayLeaveGap, known, signal };
      const { hasYoung } = await pruneVersions(dataset, options);
      return hasYoung ? PRUNE_PAUSE_MS : undefined;
    },
  };
}

/** Number of rows from which on a fragment is not joined with others. */
const LARGE_ROWS = 8 * REWRITE_BELOW_ROWS;

/** Minimum number of fragments to join, which limits how often each row is written. */
const JOIN_AT_LEAST = 8;

/** Maximum number of joins before the other chores get their turn. */
const JOINS_PER_RUN = 16;

/** Joins the fragments that commits no longer rewrite because of their size. */
export function createJoining(
  manifest: () => Promise<Manifest | undefined>,
  join: (fragments: readonly DataFragment[]) => Promise<boolean>,
): Chore {
  return {
    name: "join",
    async run(signal) {
      for (let joins = 0; joins < JOINS_PER_RUN; joins++) {
        const fragments = chooseJoined(await manifest());
        if (fragments === undefined || signal.aborted || !(await join(fragments))) return undefined;
      }
      return 0;
    },
  };
}

/** Chooses the fragments to join, up to the size of a large one; returns undefined if there are not enough. */
export function chooseJoined(manifest: Manifest | undefined): readonly DataFragment[] | undefined {
  if (manifest === undefined) return undefined;
  const format = rowFormatOf(manifest);
  const candidates = manifest.fragments.filter((fragment) => {
    const rows = liveRows(fragment);
    return rows >= REWRITE_BELOW_ROWS && rows < LARGE_ROWS && isPlainFragment(fragment, format);
  });
  if (candidates.length < JOIN_AT_LEAST) return undefined;
  const chosen: DataFragment[] = [];
  let rows = 0;
  for (const fragment of candidates.sort((a, b) => liveRows(a) - liveRows(b))) {
    if (chosen.length > 1 && rows + liveRows(fragment) > 2 * LARGE_ROWS) break;
    chosen.push(fragment);
    rows += liveRows(fragment);
  }
  return chosen;
}

/** Number of small fragments of other writers from which on the engine joins them. */
const FOREIGN_FRAGMENTS = 16;

/** Share of deleted rows above which the engine rewrites a fragment. */
const DELETED_SHARE = 1 / 4;

/** Number of deleted rows of a fragment that does not justify a rewrite. */
const DELETED_ROWS = 1_000;

/**
 * Creates the chore that has the engine do what commits here cannot: join fragments of other writers, and update
 * indices.
 */
export function createOptimizing(
  manifest: () => Promise<Manifest | undefined>,
  optimize: () => Promise<unknown>,
  log: Logger,
): Chore {
  let indexed: number | undefined;
  return {
    name: "optimize",
    async run() {
      const before = await manifest();
      if (before === undefined) return undefined;
      const fragment = Number(largestFragmentId(before) ?? 0n);
      const isStale = before.indexSection !== undefined && fragment - (indexed ?? 0) >= FOREIGN_FRAGMENTS;
      if (!isStale && !isFragmented(before)) return undefined;
      await optimize();
      const after = await manifest();
      indexed = after && Number(largestFragmentId(after) ?? 0n);
      log.debug("the engine has optimized the manifest of the catalog");
      return undefined;
    },
  };
}

/** Whether the fragments of a manifest cost more than a rewrite by the engine. */
export function isFragmented(manifest: Manifest): boolean {
  const format = rowFormatOf(manifest);
  const foreign = manifest.fragments.filter((fragment) => !isPlainFragment(fragment, format));
  const small = foreign.filter((fragment) => fragment.physicalRows < REWRITE_BELOW_ROWS);
  const sparse = manifest.fragments.some((fragment) => {
    const deleted = Number(fragment.physicalRows) - liveRows(fragment);
    return deleted > DELETED_ROWS && deleted > Number(fragment.physicalRows) * DELETED_SHARE;
  });
  return small.length >= FOREIGN_FRAGMENTS || sparse;
}

/*
 * The Rust implementation looks for a new version only at the number after its own, unless the version that it holds
 * has a setting that begins with `lance.auto_cleanup.`: then it looks for the newest. Versions that are written here
 * therefore have a setting with that prefix, which the engine's own cleanup ignores. A reader that holds any of them
 * finds newer versions even if the next number is gone. Other implementations remove the setting when they write. A
 * reader that holds a version without it finds the next one, because that is not pruned.
 */

const KEY = "lance.auto_cleanup.gaps_since";

/** Marks a manifest that becomes a version; the mark names the version from which on all have it. */
export function markGaps(manifest: Manifest, version: bigint): Manifest {
  if (Object.hasOwn(manifest.config, KEY)) return manifest;
  return {
    ...manifest,
    config: { ...manifest.config, [KEY]: String(version) },
    writerFeatureFlags: manifest.writerFeatureFlags | FLAG_TABLE_CONFIG,
  };
}

/** Whether a version can be removed unnoticed: the one before it has the mark, too. */
export function mayLeaveGap({ config, version }: Manifest): boolean {
  const since = config[KEY] ?? "";
  return /^\d+$/.test(since) && BigInt(since) < version;
}
