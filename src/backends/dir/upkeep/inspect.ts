import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import type { DatasetRef } from "../format/dataset.ts";
import { readIndices } from "../format/index-section.ts";
import { countRows } from "../format/manifest.ts";
import type { ManifestFile } from "../format/manifest-file.ts";
import { findVersions, readVersion } from "../format/version-files.ts";
import { isSystemIndex } from "../operations/indices/all-indices.ts";
import type { UpkeepPolicy } from "./policy.ts";

/** The facts about a table that decide whether it needs work. */
export interface TableFacts {
  readonly version: bigint;
  readonly rows: number;
  readonly deletedRows: number;
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
  };
  /** Number of rows outside the index that lacks the most. */
  readonly unindexedRows: number;
  /** Number of versions of the main branch. */
  readonly versions: number;
}

/** Number of rows of a full fragment; the engine joins smaller ones. */
const FULL_ROWS = 1024 * 1024;

/**
 * Inspects the newest version of a table.
 *
 * @throws LanceError TableVersionNotFound for a table without data; Unsupported for one that needs newer software
 */
export async function inspectTable(dataset: DatasetRef): Promise<TableFacts> {
  const file = await readVersion(dataset);
  const { manifest } = file;
  const { rows, deletedRows } = countRows(manifest);
  return {
    version: manifest.version,
    rows: Number(rows),
    deletedRows: Number(deletedRows),
    fragments: manifest.fragments.length,
    small: smallFragments(manifest),
    unindexedRows: await countUnindexed(file),
    versions: (await findVersions(dataset)).length,
  };
}

function smallFragments({ fragments }: Manifest): TableFacts["small"] {
  const facts = { fragments: 0, rows: 0, largest: 0, bytes: 0 };
  for (const { physicalRows, files } of fragments) {
    const rows = Number(physicalRows);
    if (rows >= FULL_ROWS) continue;
    facts.fragments += 1;
    facts.rows += rows;
    facts.largest = Math.max(facts.largest, rows);
    for (const { fileSizeBytes } of files) facts.bytes += Number(fileSizeBytes);
  }
  return facts;
}

/** Returns the number of rows outside the index that lacks the most, as far as the indices say what they cover. */
async function countUnindexed(file: ManifestFile): Promise<number> {
  const indices = (await readIndices(file)).filter(({ name }) => !isSystemIndex(name));
  return Math.max(0, ...indices.map(({ rows, indexedRows = rows }) => Number(rows - indexedRows)));
}

/** Work that a table needs: now, when its writers are quiet, or none. */
export type Need = "now" | "when quiet" | "none";

/** Sizes of small fragments whose rewrite is cheap, and hardly costs anything, in bytes. */
const CHEAP_BYTES = 64 * 1024 * 1024;
const TRIVIAL_BYTES = 16 * 1024 * 1024;

/** Whether the small fragments of a table are cheap to rewrite. */
export function isCheap({ small }: TableFacts): boolean {
  return small.bytes <= CHEAP_BYTES;
}

/** Memory that the engine holds at most while it joins fragments of any size, in bytes. The figure was measured. */
const COMPACTION_BYTES = 64 * 1024 * 1024;

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
 */
export function needOf({ small, rows, deletedRows, unindexedRows }: TableFacts, policy: UpkeepPolicy): Need {
  const cost = Math.max(1, Math.sqrt(small.bytes / CHEAP_BYTES));
  const deletedShare = deletedRows === 0 ? 0 : deletedRows / (rows + deletedRows);
  if (
    small.fragments >= policy.fragments * cost ||
    unindexedRows >= Math.max(policy.unindexedRows, rows / 100) ||
    deletedShare * 100 >= policy.deletedPercent
  ) {
    return "now";
  }
  const isWorthIt = small.bytes <= TRIVIAL_BYTES || (small.rows - small.largest) * 4 >= small.largest;
  return (small.fragments > 1 && isWorthIt) || unindexedRows > rows / QUIET_UNINDEXED ? "when quiet" : "none";
}
