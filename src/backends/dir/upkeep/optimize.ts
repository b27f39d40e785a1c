import { isLanceError } from "../../../namespace/errors.ts";
import type { WorkNotes } from "../batch/work-notes.ts";
import type { DataContext } from "../data/data-context.ts";
import type { FoundTable } from "../data/table-source.ts";
import { compactOnly, NO_VERSION } from "../engine/compact.ts";
import { engineCall } from "../engine/failures/errors.ts";
import { findUnsafe } from "../engine/workarounds/misread-lists/find-misread.ts";
import { dropOrphanIndices } from "../format/changes/orphan-indices.ts";
import { releaseSegments } from "../format/changes/release-segments.ts";
import type { DatasetRef } from "../format/dataset.ts";
import type { ManifestFile } from "../format/files/manifest-file.ts";
import type { StorageClock } from "../format/storage-clock.ts";
import { syncVersions } from "../format/versions/make-durable.ts";
import { readTransactionMessage } from "../format/versions/transaction-records.ts";
import { latestVersion, readVersion } from "../format/versions/version-files.ts";
import type { CatalogDataContext, EngineContext, JobContext } from "../operations/context.ts";
import type { ReadAhead } from "../operations/read/read-ahead.ts";
import { datasetOf, withData } from "../operations/tables/open-data.ts";
import type { Work } from "./inspect.ts";

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

/** The data of tables, whatever catalog lists them, and what shows which versions are still needed. */
export interface TableUpkeepContext extends DataContext {
  readonly clock: StorageClock;
  readonly work: Pick<WorkNotes, "begin" | "isActive" | "isOtherAtWork">;
}

/** The storage of tables, and the memory for work on them. */
export interface UpkeepContext extends CatalogDataContext, JobContext, Pick<EngineContext, "cluster"> {
  /** The memory of large results, of which compactions take a part. */
  readonly readAhead: ReadAhead;
}

/** The fragments of a run, and the newest version after it. */
export interface Compacted extends Pick<UpkeepFigures, "fragmentsRemoved" | "fragmentsAdded"> {
  readonly version: bigint;
}

/** Maximum number of attempts to join fragments; on a busy machine the engine sometimes does not begin. */
const JOINS = 3;

/** Has the engine work on a table, unless it might misread the rows that it rewrites. */
export async function optimizeTable(
  context: DataContext,
  table: FoundTable,
  work: Work,
  signal: AbortSignal,
): Promise<Compacted> {
  const dataset = datasetOf(context, table);
  const { manifest } = await readVersion(dataset);
  if ((await findUnsafe(dataset, manifest)) !== undefined)
    return { fragmentsRemoved: 0, fragmentsAdded: 0, version: manifest.version };
  for (let attempt = 1; ; attempt++) {
    const compacted = await optimizeOnce(context, table, work, signal);
    if (work === "all" || compacted.fragmentsRemoved > 0 || attempt === JOINS) return compacted;
  }
}

async function optimizeOnce(
  context: DataContext,
  table: FoundTable,
  work: Work,
  signal: AbortSignal,
): Promise<Compacted> {
  const dataset = datasetOf(context, table);
  const before = (await latestVersion(dataset))?.version ?? 0n;
  await dropOrphanIndices(dataset);
  if (work === "all") await release(context, table, signal);
  await withData(context, table, {}, (native) =>
    engineCall(async () => {
      await (work === "all" ? native.optimize(NO_VERSION) : compactOnly(native));
    }),
  );
  await dropOrphanIndices(dataset);
  if (work === "all") context.reindexed.delete(table.path);
  // Compaction and indices are versions of their own, each with files that the one before lacks.
  const after = (await latestVersion(dataset))?.version ?? before;
  const compacted = { fragmentsRemoved: 0, fragmentsAdded: 0, version: after };
  const made = Array.from({ length: Number(after - before) }, (_, at) => before + 1n + BigInt(at));
  await syncVersions(dataset, made);
  for (const version of made) {
    const { removed, added } = await rewrittenIn(dataset, version);
    compacted.fragmentsRemoved += removed;
    compacted.fragmentsAdded += added;
  }
  return compacted;
}

/** Returns how many fragments a version has rewritten, and how many it has in their place. */
async function rewrittenIn(dataset: DatasetRef, version: bigint) {
  const file = await readIfThere(dataset, version);
  const transaction = file && (await readTransactionMessage(dataset, file));
  if (transaction?.operation.case !== "rewrite") return { removed: 0, added: 0 };
  const [before, after] = [await readIfThere(dataset, version - 1n), file].map(
    (version) => new Set(version?.manifest.fragments.map(({ id }) => id)),
  ) as [Set<bigint>, Set<bigint>];
  return { removed: before.difference(after).size, added: after.difference(before).size };
}

/** Reads a version; returns undefined if it is gone or of an unknown kind. */
function readIfThere(dataset: DatasetRef, version: bigint): Promise<ManifestFile | undefined> {
  return readVersion(dataset, version).catch((error: unknown) => {
    if (UNREADABLE.some((name) => isLanceError(error, name))) return undefined;
    throw error;
  });
}

const UNREADABLE = ["TableVersionNotFound", "Unsupported"] as const;

/** Releases small segments of indices. The table stays marked until the engine has added their rows again. */
async function release(context: DataContext, table: FoundTable, signal: AbortSignal): Promise<void> {
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
