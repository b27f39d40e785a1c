import { create } from "@bufbuild/protobuf";
import type { IndexMetadata, Manifest } from "../../../gen/lance/format/table_pb.ts";
import { Transaction_CreateIndexSchema } from "../../../gen/lance/format/transaction_pb.ts";
import { isLanceError } from "../../../namespace/errors.ts";
import type { WorkNotes } from "../batch/work-notes.ts";
import type { DataContext } from "../data/data-context.ts";
import type { FoundTable } from "../data/table-source.ts";
import { engineCall } from "../engine/failures/errors.ts";
import type { NativeTable } from "../engine/native/native.ts";
import { findUnsafe } from "../engine/workarounds/misread-lists/find-misread.ts";
import { commitChange } from "../format/changes/commit.ts";
import { dropOrphanIndices } from "../format/changes/index-entries.ts";
import type { DatasetRef } from "../format/dataset.ts";
import { coverOf, readSegments } from "../format/files/index-section.ts";
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

/** Asks the engine to prune no version: none is older than 1970. */
const NO_VERSION = 0;

/** Says that a handle does not follow the newest version. */
const IS_PINNED = /when a specific version is checked out/;

/**
 * Has the engine join small fragments and remove deleted rows from the files, and leaves indices and versions alone. Its
 * cost does not depend on the number of versions.
 *
 * The engine has no call for this: `optimize` compacts, then reads the manifests of all versions to prune some, and then
 * brings the indices up to date. Before each of these it refuses a handle that does not follow the newest version. A
 * handle that stops to follow while the engine compacts therefore ends the call with the compaction. If it stops too
 * late, the engine does the rest, too; if too early, which happens on a busy machine, the engine does nothing.
 */
async function compactOnly(table: Pick<NativeTable, "checkoutCurrent">): Promise<void> {
  const own = await table.checkoutCurrent();
  try {
    await own.checkoutLatest();
    // A handle cannot be closed while a call of it runs.
    const [compacted] = await Promise.allSettled([
      own.optimize(NO_VERSION),
      own.version().then((version) => own.checkout(version)),
    ]);
    if (compacted.status === "rejected" && !isPinned(compacted.reason)) throw compacted.reason;
  } finally {
    own.close();
  }
}

function isPinned(error: unknown): boolean {
  return error instanceof Error && IS_PINNED.test(error.message);
}

/*
 * The engine appends a segment to an index of vectors each time that it brings the index up to date, and merges them
 * only when a partition has outgrown its size. Each search reads all segments, and fragments of different segments are
 * not joined.
 */

/** Number of segments of an index from which on small ones are released. */
const MANY_SEGMENTS = 8;

/** Maximum size of the data files of the fragments that are released at a time, in bytes. */
const RELEASED_BYTES = 64 * 1024 * 1024;

const VECTOR_INDEX = /[./]VectorIndexDetails$/;

/**
 * Takes the small segments out of the indices of vectors that have many, so that the engine adds their rows again, in a
 * single segment. The largest segment of an index stays. Until then, searches read the rows without an index.
 *
 * @returns the number of segments that were released
 * @throws LanceError as {@link commitChange}
 */
export async function releaseSegments(dataset: DatasetRef, signal: AbortSignal): Promise<number> {
  const file = await readVersion(dataset);
  if (smallSegments(file.manifest, await readSegments(file)).length === 0) return 0;
  let released: readonly IndexMetadata[] = [];
  await commitChange(
    dataset,
    (manifest) => {
      const value = create(Transaction_CreateIndexSchema);
      return {
        operation: { case: "createIndex", value },
        changeIndices(segments) {
          released = smallSegments(manifest, segments);
          value.removedIndices = [...released];
          return segments.filter((segment) => !released.includes(segment));
        },
      };
    },
    { signal },
  );
  return released.length;
}

/** Returns the segments to release: of each index with many, the smallest ones. */
function smallSegments(manifest: Manifest, segments: readonly IndexMetadata[]): IndexMetadata[] {
  const vectors = segments.filter(({ indexDetails }) => VECTOR_INDEX.test(indexDetails?.typeUrl ?? ""));
  return [...Map.groupBy(vectors, ({ name }) => name).values()]
    .filter((own) => own.length >= MANY_SEGMENTS)
    .flatMap((own) => smallest(manifest, own));
}

function smallest(manifest: Manifest, segments: readonly IndexMetadata[]): IndexMetadata[] {
  // A segment that does not say what it covers may cover everything.
  if (segments.some(({ fragmentBitmap }) => fragmentBitmap.byteLength === 0)) return [];
  const sized = segments.map((segment) => ({ segment, bytes: coveredBytes(manifest, segment) }));
  sized.sort((a, b) => a.bytes - b.bytes);
  let sum = 0;
  const chosen = sized.slice(0, -1).filter(({ bytes }) => {
    sum += bytes;
    return sum <= RELEASED_BYTES;
  });
  return chosen.length < 2 ? [] : chosen.map(({ segment }) => segment);
}

/** Returns the size of the data files of the fragments that a segment covers, as far as it is known. */
function coveredBytes({ fragments }: Manifest, segment: IndexMetadata): number {
  const covers = coverOf(segment);
  return fragments
    .filter(({ id }) => covers(Number(id)))
    .flatMap(({ files }) => files)
    .reduce((sum, { fileSizeBytes }) => sum + Number(fileSizeBytes), 0);
}
