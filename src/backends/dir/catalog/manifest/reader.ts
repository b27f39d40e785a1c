import { toBinary } from "@bufbuild/protobuf";
import {
  type DataFragment,
  DataFragmentSchema,
  DeletionFileSchema,
} from "../../../../gen/lance/format/table_pb.ts";
import { inSlices } from "../../../../runtime/pace.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import type { Memory } from "../state/memory.ts";
import type { Delta, RowBatch } from "../state/rows/stored-row.ts";
import { type CatalogState, createStateBuilder } from "../state/state.ts";
import { liveRows } from "./commit-plan.ts";

/** Rows per batch, which the engine returns at once and which delay the process's other calls. */
const BATCH_ROWS = 16_384;

/** Share of the rows above which reading the changes costs more than reading everything. */
const MAX_CHANGED_SHARE = 1 / 4;

/**
 * Maximum number of rows that a state takes over in place, because its readers must not see half of them. Reading
 * everything costs more than more rows, but happens in steps.
 */
export const MAX_ROWS_AT_ONCE = 8_192;

/** Maximum number of address ranges in a query. */
const MAX_RANGES = 64;

/**
 * Reads the version at which a handle is.
 *
 * @param expected number of rows that it is likely to have
 */
export async function readState(
  table: NativeTable,
  expected?: number,
  memory?: Memory,
): Promise<CatalogState> {
  const { decodeBatch, ROW_COLUMNS } = await import("./row-codec.ts");
  const builder = createStateBuilder(expected, memory);
  for await (const batch of query(table, ROW_COLUMNS, undefined)) {
    await inSlices(builder.add(decodeBatch(batch)));
  }
  return inSlices(builder.finish());
}

/** Reads the ids of the rows that meet a condition. */
export async function readIds(table: NativeTable, condition: string): Promise<string[]> {
  const { decodeIds, ID_COLUMN } = await import("./row-codec.ts");
  const ids: string[] = [];
  for await (const batch of query(table, [ID_COLUMN], condition)) ids.push(...decodeIds(batch));
  return ids;
}

/**
 * Reads the differences between an earlier version and a later one: new and rewritten fragments, and the remaining rows
 * of fragments where rows were deleted.
 *
 * @param table a handle at the later version
 * @returns undefined if so much has changed that reading everything costs less
 */
export async function readDelta(
  table: NativeTable,
  earlier: readonly DataFragment[],
  later: readonly DataFragment[],
): Promise<Delta | undefined> {
  const changes = compareFragments(earlier, later);
  const { added, lost, thinned } = changes;
  const [addedRanges, thinnedRanges] = [rangesOf(added), rangesOf(thinned)];
  if (rowsOf(added) + rowsOf(lost) > rowsOf(later) * MAX_CHANGED_SHARE) return undefined;
  if (costOf(changes) > MAX_ROWS_AT_ONCE) return undefined;
  if (addedRanges.length + thinnedRanges.length > MAX_RANGES) return undefined;
  const { decodeAddressBatch, decodeBatch, ADDRESS_COLUMN, ROW_COLUMNS } = await import("./row-codec.ts");
  const batches: RowBatch[] = [];
  if (added.length > 0) {
    for await (const batch of query(table, ROW_COLUMNS, condition(addedRanges)))
      batches.push(decodeBatch(batch));
  }
  const remaining = new Map(
    thinned.map(({ id, physicalRows }) => [Number(id), new Uint8Array(Number(physicalRows))]),
  );
  if (thinned.length > 0) {
    for await (const batch of query(table, [ADDRESS_COLUMN], condition(thinnedRanges))) {
      const addresses = decodeAddressBatch(batch);
      for (let i = 0; i < addresses.length; i += 2) {
        remaining.get(addresses[i + 1] as number)?.fill(1, addresses[i], (addresses[i] as number) + 1);
      }
    }
  }
  return { lostFragments: new Set(lost.map(({ id }) => Number(id))), remaining, added: batches };
}

interface FragmentChanges {
  readonly added: readonly DataFragment[];
  readonly lost: readonly DataFragment[];
  /** In the form of the later version. */
  readonly thinned: readonly DataFragment[];
  /** Number of rows that the thinned fragments have lost. */
  readonly deleted: number;
}

/** Number of rows that move to another fragment at the cost of a new or a deleted row. */
const MOVED_PER_ROW = 8;

/** Returns what changes cost the state, as a number of new or deleted rows: as many as possible are moved. */
function costOf({ added, lost, deleted }: FragmentChanges): number {
  const [put, taken] = [added, lost].map((fragments) =>
    fragments.reduce((sum, fragment) => sum + liveRows(fragment), 0),
  ) as [number, number];
  return Math.abs(put - taken) + deleted + Math.min(put, taken) / MOVED_PER_ROW;
}

/** A rewritten fragment is both added and lost: an overwrite of a table restarts its numbers. */
function compareFragments(earlier: readonly DataFragment[], later: readonly DataFragment[]): FragmentChanges {
  const before = new Map(earlier.map((fragment) => [fragment.id, fragment]));
  const kept = later.filter((fragment) => {
    const old = before.get(fragment.id);
    return old === fragment || (old !== undefined && filesOf(old) === filesOf(fragment));
  });
  const keptIds = new Set(kept.map(({ id }) => id));
  const earlierOf = ({ id }: DataFragment) => before.get(id) as DataFragment;
  const thinned = kept.filter((fragment) => deletionsOf(earlierOf(fragment)) !== deletionsOf(fragment));
  return {
    added: later.filter(({ id }) => !keptIds.has(id)),
    lost: earlier.filter(({ id }) => !keptIds.has(id)),
    thinned,
    deleted: thinned.reduce(
      (sum, fragment) => sum + Math.abs(liveRows(earlierOf(fragment)) - liveRows(fragment)),
      0,
    ),
  };
}

/** Serializes everything in a fragment except its deletions; the names of the files are unique. */
function filesOf(fragment: DataFragment): string {
  return hexOf(toBinary(DataFragmentSchema, { ...fragment, deletionFile: undefined }));
}

function deletionsOf({ deletionFile }: DataFragment): string {
  return deletionFile === undefined ? "" : hexOf(toBinary(DeletionFileSchema, deletionFile));
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}

function rowsOf(fragments: readonly DataFragment[]): number {
  return fragments.reduce((sum, { physicalRows }) => sum + Number(physicalRows), 0);
}

/** Returns the ranges of consecutive fragment numbers: the first number, and the one after the last. */
function rangesOf(fragments: readonly DataFragment[]): [start: bigint, end: bigint][] {
  const ranges: [bigint, bigint][] = [];
  for (const { id } of fragments) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === id) last[1] = id + 1n;
    else ranges.push([id, id + 1n]);
  }
  return ranges;
}

function condition(ranges: readonly [start: bigint, end: bigint][]): string {
  const parts = ranges.map(([start, end]) => `(_rowaddr >= ${start << 32n} AND _rowaddr < ${end << 32n})`);
  return parts.join(" OR ");
}

async function* query(
  table: NativeTable,
  columns: string[],
  where: string | undefined,
): AsyncGenerator<Uint8Array> {
  const query = table.query();
  query.selectColumns(columns);
  if (where !== undefined) query.onlyIf(where);
  const batches = await query.execute(BATCH_ROWS);
  for (let batch = await batches.next(); batch !== null; batch = await batches.next()) yield batch;
}
