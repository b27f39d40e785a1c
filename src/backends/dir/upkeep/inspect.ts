import type { DataFragment, IndexMetadata, Manifest } from "../../../gen/lance/format/table_pb.ts";
import { findUnsafe } from "../engine/workarounds/misread-lists/find-misread.ts";
import type { DatasetRef } from "../format/dataset.ts";
import { indexType, indicesOf, readSegments } from "../format/files/index-section.ts";
import { countRows } from "../format/files/manifest.ts";
import { type Contains, readRoaring } from "../format/files/roaring.ts";
import { findVersions, readVersion } from "../format/versions/version-files.ts";
import { isSystemIndex } from "../operations/indices/all-indices.ts";
import type { UpkeepPolicy } from "./policy.ts";

/** The facts about a table that decide whether it needs work. */
export interface TableFacts {
  readonly version: bigint;
  readonly rows: number;
  readonly deletedRows: number;
  /** Number of deleted rows in fragments that the engine does not rewrite; a cluster does. */
  readonly keptDeletedRows: number;
  /** Number of all fragments. */
  readonly fragments: number;
  /** Fragments that the engine joins with their neighbours. */
  readonly small: {
    readonly fragments: number;
    readonly rows: number;
    /** Rows of the largest of them. */
    readonly largest: number;
    /** Size of their data files as far as it is known, in bytes. */
    readonly bytes: number;
    /** Number of those from which reads gain little by a rewrite. */
    readonly coarse: number;
    /** Number of those that no index covers, not even in part. */
    readonly outside: number;
  };
  /** Number of rows outside the index that lacks the most. */
  readonly unindexedRows: number;
  /** Number of versions of the main branch. */
  readonly versions: number;
  /** Whether the engine would rewrite rows that it misreads, or that it would then misread; see {@link findUnsafe}. */
  readonly misread: boolean;
}

/** Number of rows of a full fragment; the engine joins smaller ones. */
const FULL_ROWS = 1024 * 1024;

/** Size of small fragments from which on reads gain little by a rewrite, in bytes. The figures are in docs/adr/0072. */
const COARSE_BYTES = 4 * 1024 * 1024;

/**
 * Inspects the newest version of a table.
 *
 * @throws LanceError TableVersionNotFound for a table without data; Unsupported for one that needs newer software
 */
export async function inspectTable(dataset: DatasetRef): Promise<TableFacts> {
  const file = await readVersion(dataset);
  const { manifest } = file;
  const { rows, deletedRows } = countRows(manifest);
  const segments = (await readSegments(file)).filter(({ name }) => !isSystemIndex(name));
  const isKept = keptBy(segments);
  return {
    version: manifest.version,
    rows: Number(rows),
    deletedRows: Number(deletedRows),
    keptDeletedRows: Number(countRows({ fragments: manifest.fragments.filter(isKept) }).deletedRows),
    fragments: manifest.fragments.length,
    small: smallFragments(manifest, segments, isKept),
    unindexedRows: countUnindexed(manifest, segments),
    versions: (await findVersions(dataset)).length,
    misread: (await findUnsafe(dataset, manifest)) !== undefined,
  };
}

/** Returns what a segment covers; one that does not say it may cover everything. */
const coveredBy = ({ fragmentBitmap }: IndexMetadata): Contains =>
  fragmentBitmap.byteLength === 0 ? () => true : readRoaring(fragmentBitmap);

/** Types of indices that the engine brings up to date, in the words of the format. It ignores newer ones, and those for other readers. */
const EXTENDED: ReadonlySet<string> = new Set([
  ...["BTree", "Bitmap", "BloomFilter", "FM", "Inverted", "Json", "LabelList", "NGram", "Vector", "ZoneMap"],
]);

/** Whether the engine brings the indices of a type up to date. Old writers do not record the type of those that it does. */
function isExtended(type: string | undefined): boolean {
  return type === undefined || EXTENDED.has(type);
}

/** Returns a test for the fragments that the engine does not rewrite, because an index covers them that it ignores; the index would lose them. */
function keptBy(segments: readonly IndexMetadata[]): (fragment: Pick<DataFragment, "id">) => boolean {
  const covers = segments
    .filter(({ indexDetails }) => indexDetails !== undefined && !isExtended(indexType(indexDetails.typeUrl)))
    .map(coveredBy);
  return ({ id }) => covers.some((contains) => contains(Number(id)));
}

function smallFragments(
  { fragments }: Manifest,
  segments: readonly IndexMetadata[],
  isKept: ReturnType<typeof keptBy>,
): TableFacts["small"] {
  const facts = { fragments: 0, rows: 0, largest: 0, bytes: 0, coarse: 0, outside: 0 };
  const covers = segments.map(coveredBy);
  for (const fragment of fragments) {
    const { id, physicalRows, files } = fragment;
    const rows = Number(physicalRows);
    if (rows >= FULL_ROWS || isKept(fragment)) continue;
    facts.fragments += 1;
    facts.rows += rows;
    facts.largest = Math.max(facts.largest, rows);
    const bytes = files.reduce((sum, { fileSizeBytes }) => sum + Number(fileSizeBytes), 0);
    facts.bytes += bytes;
    if (bytes >= COARSE_BYTES) facts.coarse += 1;
    if (!covers.some((contains) => contains(Number(id)))) facts.outside += 1;
  }
  return facts;
}

/** Returns the number of rows outside the index that lacks the most, of those that the engine extends and that say what they cover. */
function countUnindexed(manifest: Manifest, segments: readonly IndexMetadata[]): number {
  const indices = indicesOf(manifest, segments).filter(({ type }) => isExtended(type));
  return Math.max(0, ...indices.map(({ rows, indexedRows = rows }) => Number(rows - indexedRows)));
}

/**
 * Work of the engine on a table: `join` joins fragments and removes deleted rows from the files; `all` also brings the
 * indices up to date, and reads all versions (docs/adr/0072).
 */
export type Work = "join" | "all";

/** Work that a table needs. */
export interface Need {
  readonly work: Work;
  readonly when: "now" | "when quiet";
}

/** Whether a table has fragments to join, or deleted rows to remove from the files. */
export function isJoinable({ small, deletedRows }: Pick<TableFacts, "small" | "deletedRows">): boolean {
  return small.fragments > 1 || deletedRows > 0;
}

/** Sizes of small fragments whose rewrite is cheap, and hardly costs anything, in bytes. */
const CHEAP_BYTES = 64 * 1024 * 1024;
const TRIVIAL_BYTES = 16 * 1024 * 1024;

/** Whether the small fragments of a table are cheap to rewrite. */
export function isCheap({ small }: TableFacts): boolean {
  return small.bytes <= CHEAP_BYTES;
}

/** Memory that the engine holds at most while it joins fragments of any size, in bytes. The figure was measured. */
const COMPACTION_BYTES = 64 * 1024 * 1024;

/** How many times more fragments it takes if most are such ones, unless there is very much to rewrite. */
const COARSE_TIMES = 16;

/** Estimates the memory that the engine holds while it optimizes a table, in bytes. */
export function memoryOf({ small }: TableFacts): number {
  return Math.min(2 * small.bytes, COMPACTION_BYTES);
}

/** Share of the rows, in the reciprocal, that may remain outside an index of a quiet table. */
const QUIET_UNINDEXED = 10_000;

/**
 * Decides whether a table needs the engine's work.
 *
 * The engine rewrites all small fragments together, so the more there is to rewrite, the more has to have changed.
 *
 * @param byCluster whether a cluster rewrites fragments. Default: the engine does
 */
export function needOf(
  { small, rows, deletedRows, keptDeletedRows, unindexedRows, misread }: TableFacts,
  policy: UpkeepPolicy,
  byCluster = false,
): Need | undefined {
  if (misread) return undefined;
  if (unindexedRows >= Math.max(policy.unindexedRows, rows / 100)) return { work: "all", when: "now" };
  const size = small.bytes / CHEAP_BYTES;
  const areCoarse = small.coarse * 2 >= small.fragments;
  const cost = Math.max(1, areCoarse ? Math.min(size, COARSE_TIMES) : 0, Math.sqrt(size));
  if (small.fragments >= policy.fragments * cost) {
    // The engine joins no fragments of which an index covers only some.
    return { work: small.outside * 2 >= small.fragments ? "join" : "all", when: "now" };
  }
  const removable = byCluster ? deletedRows : deletedRows - keptDeletedRows;
  const deletedShare = removable === 0 ? 0 : removable / (rows + deletedRows);
  if (deletedShare * 100 >= policy.deletedPercent) return { work: "join", when: "now" };
  if (unindexedRows > rows / QUIET_UNINDEXED) return { work: "all", when: "when quiet" };
  const isWorthIt =
    small.bytes <= TRIVIAL_BYTES || (!areCoarse && (small.rows - small.largest) * 4 >= small.largest);
  if (small.fragments <= 1 || !isWorthIt) return undefined;
  return { work: small.outside === small.fragments ? "join" : "all", when: "when quiet" };
}
