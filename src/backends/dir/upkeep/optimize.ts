import { isLanceError } from "../../../namespace/errors.ts";
import type { ChangeContext } from "../batch/change-context.ts";
import { engineCall } from "../engine/errors.ts";
import { type KnownVersions, pruneVersions } from "../format/prune.ts";
import { releaseSegments } from "../format/release-segments.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import { syncVersion } from "../format/sync-version.ts";
import { latestVersion } from "../format/version-files.ts";
import type { ReadAhead } from "../operations/read/read-ahead.ts";
import { datasetOf, type FoundTable, withData } from "../operations/tables/lookup.ts";
import type { UpkeepTimes } from "./activity.ts";
import type { UpkeepPolicy } from "./policy.ts";

/** Counts of a run. */
export interface UpkeepFigures {
  readonly fragmentsRemoved: number;
  readonly fragmentsAdded: number;
  readonly versionsRemoved: number;
  /** Number of files and indices that only removed versions needed. */
  readonly filesRemoved: number;
  /** Size of the removed versions and of these files, as far as it is recorded, in bytes. */
  readonly bytesRemoved: number;
}

/** The storage of tables, and its clock. */
export interface UpkeepContext extends ChangeContext {
  readonly clock: StorageClock;
  /** The memory of large results, of which compactions take a part. */
  readonly readAhead: ReadAhead;
}

/** Asks the engine to prune no version: none is older than 1970. */
const NO_VERSION = 0;

/** The fragments of a run, and the newest version after it. */
export interface Compacted extends Pick<UpkeepFigures, "fragmentsRemoved" | "fragmentsAdded"> {
  readonly version: bigint;
}

/** Has the engine join small fragments, remove deleted rows from the files and bring the indices up to date. */
export async function optimizeTable(
  context: UpkeepContext,
  table: FoundTable,
  signal: AbortSignal,
): Promise<Compacted> {
  const dataset = datasetOf(context, table);
  const before = (await latestVersion(dataset))?.version ?? 0n;
  await release(context, table, signal);
  const { compaction } = await withData(context, table, {}, (native) =>
    engineCall(() => native.optimize(NO_VERSION)),
  );
  context.reindexed.delete(table.path);
  // Compaction and indices are versions of their own, each with files that the one before lacks.
  const after = (await latestVersion(dataset))?.version ?? before;
  for (let version = before + 1n; version <= after; version++) await syncVersion(dataset, version);
  const { fragmentsRemoved, fragmentsAdded } = compaction;
  return { fragmentsRemoved, fragmentsAdded, version: after };
}

/** Releases small segments of indices. The table stays marked until the engine has added their rows again. */
async function release(context: UpkeepContext, table: FoundTable, signal: AbortSignal): Promise<void> {
  const { reindexed } = context;
  const isMarked = reindexed.has(table.path);
  reindexed.add(table.path);
  const released = await releaseSegments(datasetOf(context, table), signal).catch((error: unknown) => {
    // The engine may know a feature that this project does not.
    if (isLanceError(error, "Unsupported")) return 0;
    throw error;
  });
  if (released === 0 && !isMarked) reindexed.delete(table.path);
}

/** Share of surplus versions, beyond which they are pruned: each time, all versions are read. */
const SURPLUS = 1.25;

/** Whether a table has so many versions that surplus ones are pruned. */
export function hasSurplus(versions: number, { maxVersions }: UpkeepPolicy): boolean {
  return maxVersions !== undefined && versions > maxVersions * SURPLUS;
}

/** The figures of {@link pruneTable}. */
export type PruneFigures = Pick<UpkeepFigures, "versionsRemoved" | "filesRemoved" | "bytesRemoved">;

/** The figures of a run that prunes nothing. */
export const NOTHING_PRUNED: PruneFigures = { versionsRemoved: 0, filesRemoved: 0, bytesRemoved: 0 };

/** Ages of versions, by which those are protected that a call may still read or have just made. */
export type PruneTimes = Pick<UpkeepTimes, "minAgeMs" | "surplusAgeMs" | "remoteSurplusAgeMs">;

/**
 * Prunes the versions that the policy does not keep, except for those that tags and branches need, and those that
 * running calls of this process read.
 *
 * @param dryRun whether to report what would be pruned, without writing
 */
export async function pruneTable(
  { store, clock, engine }: UpkeepContext,
  table: FoundTable,
  policy: UpkeepPolicy,
  { minAgeMs, surplusAgeMs, remoteSurplusAgeMs }: PruneTimes,
  known: KnownVersions,
  signal: AbortSignal,
  dryRun = false,
): Promise<PruneFigures> {
  const dataset = datasetOf({ store }, table);
  const useMs = engine.longestUse(table.path);
  // A call reads a version that was the newest when the call began, so it may be older than the call.
  const inUseMs = useMs === 0 ? 0 : useMs + minAgeMs;
  const surplusMs = store.files === undefined ? remoteSurplusAgeMs : surplusAgeMs;
  const retained = { keep: 1, minAgeMs: Math.max(policy.retentionMs, minAgeMs, inUseMs) };
  const surplus =
    policy.maxVersions === undefined
      ? []
      : [{ keep: policy.maxVersions, minAgeMs: Math.max(surplusMs, inUseMs) }];
  const pruned: PruneFigures[] = [];
  for (const rule of [retained, ...surplus]) {
    const { versions, files, bytes } = await pruneVersions(dataset, {
      ...rule,
      clock,
      known,
      signal,
      dryRun,
    });
    pruned.push({ versionsRemoved: versions, filesRemoved: files, bytesRemoved: bytes });
  }
  // Both rules take the oldest versions, so in a dry run the longer list has those of the other.
  return pruned.reduce((a, b) => (dryRun ? longer(a, b) : sum(a, b)));
}

function longer(a: PruneFigures, b: PruneFigures): PruneFigures {
  return a.versionsRemoved >= b.versionsRemoved ? a : b;
}

function sum(a: PruneFigures, b: PruneFigures): PruneFigures {
  return {
    versionsRemoved: a.versionsRemoved + b.versionsRemoved,
    filesRemoved: a.filesRemoved + b.filesRemoved,
    bytesRemoved: a.bytesRemoved + b.bytesRemoved,
  };
}
