import type { FoundTable } from "../data/table-source.ts";
import type { KnownVersions } from "../format/versions/examine-versions.ts";
import { type PruneOptions, pruneVersions } from "../format/versions/prune.ts";
import { datasetOf } from "../operations/tables/open-data.ts";
import type { UpkeepTimes } from "./activity.ts";
import type { TableUpkeepContext, UpkeepFigures } from "./optimize.ts";
import { THINNED, type UpkeepPolicy } from "./policy.ts";

/** Share of surplus versions, beyond which they are pruned: each time, all versions are listed. */
const SURPLUS = 1.25;

/** Whether a table has so many versions that surplus ones are pruned. */
export function hasSurplus(versions: number, policy: UpkeepPolicy): boolean {
  return versions > Math.min(...surplusRules(policy).map(({ keep }) => keep)) * SURPLUS;
}

/** Returns the rules by which versions go before the retention ends. */
function surplusRules({ history, maxVersions }: UpkeepPolicy): Pick<PruneOptions, "keep" | "keepEachMs">[] {
  const bounded = maxVersions === undefined ? [] : [{ keep: maxVersions }];
  return history === "all" ? bounded : [...bounded, THINNED];
}

/** How much the storage may date a version too early, in milliseconds. */
const USE_SLACK_MS = 10_000;

/** The counts of {@link pruneTable}. */
export type PruneFigures = Pick<UpkeepFigures, "versionsRemoved" | "filesRemoved" | "bytesRemoved">;

/** Result of {@link pruneTable}. */
export interface PrunedTable {
  readonly figures: PruneFigures;
  /** Whether there are surplus versions that only their age protects. */
  readonly hasYoung: boolean;
  /** Whether there are versions that only the time since their replacement protects. */
  readonly hasReplaced: boolean;
}

/** The result of a run that does not prune. */
export const NOT_PRUNED: PrunedTable = {
  figures: { versionsRemoved: 0, filesRemoved: 0, bytesRemoved: 0 },
  hasYoung: false,
  hasReplaced: false,
};

/** Ages of versions, by which those are protected that a call may still read or have just made. */
export type PruneTimes = Pick<UpkeepTimes, "minAgeMs" | "surplusAgeMs" | "remoteSurplusAgeMs" | "replacedMs">;

/**
 * Prunes the versions that the policy does not keep, except for those that tags and branches need, and those that
 * running calls of this process read. While another process does long work on the table, none is pruned. Versions that a catalog commits are
 * the catalog's to prune: a version that a tag comes to name meanwhile could not be restored.
 *
 * @param dryRun whether to report what would be pruned, without writing
 */
export async function pruneTable(
  { store, clock, engine, work }: TableUpkeepContext,
  table: FoundTable,
  policy: UpkeepPolicy,
  { minAgeMs, surplusAgeMs, remoteSurplusAgeMs, replacedMs }: PruneTimes,
  known: KnownVersions,
  signal: AbortSignal,
  dryRun = false,
): Promise<PrunedTable> {
  if (store.versions !== undefined) return NOT_PRUNED;
  // The engine would miss the versions between when the other process commits.
  if (await work.isOtherAtWork(table.location)) return { ...NOT_PRUNED, hasReplaced: true };
  const dataset = datasetOf({ store }, table);
  const useMs = engine.longestUse(table.path);
  // A call reads a version that was the newest when the call began, so the next version is younger than the call.
  const minReplacedMs = Math.max(replacedMs, useMs === 0 ? 0 : useMs + USE_SLACK_MS);
  const surplusMs = store.files === undefined ? remoteSurplusAgeMs : surplusAgeMs;
  const retained = { keep: 1, minAgeMs: Math.max(policy.retentionMs, minAgeMs) };
  const surplus = surplusRules(policy).map((rule) => ({ ...rule, minAgeMs: surplusMs }));
  const pruned: PruneFigures[] = [];
  let [hasYoung, hasReplaced] = [false, false];
  for (const rule of [retained, ...surplus]) {
    const { versions, files, bytes, ...result } = await pruneVersions(dataset, {
      ...rule,
      minReplacedMs,
      isRead: (version) => engine.readVersions.has(table.path, Number(version)),
      clock,
      known,
      signal,
      dryRun,
    });
    pruned.push({ versionsRemoved: versions, filesRemoved: files, bytesRemoved: bytes });
    hasYoung ||= rule !== retained && result.hasYoung;
    hasReplaced ||= result.hasReplaced;
  }
  // A dry run deletes nothing between the rules, which take about the same versions: the longest list counts.
  return { figures: pruned.reduce((a, b) => (dryRun ? longer(a, b) : sum(a, b))), hasYoung, hasReplaced };
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
