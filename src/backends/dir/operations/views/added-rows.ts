import { toBinary } from "@bufbuild/protobuf";
import { FieldSchema } from "../../../../gen/lance/format/file_pb.ts";
import {
  type DataFragment,
  DataFragmentSchema,
  type Manifest,
} from "../../../../gen/lance/format/table_pb.ts";
import type { Transaction_Rewrite_RewriteGroup } from "../../../../gen/lance/format/transaction_pb.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { KEEPING, MAX_STEPS, readStep } from "./view-state.ts";

/** Rows by their addresses, from the first to before the last. */
export interface RowRange {
  readonly from: bigint;
  readonly to: bigint;
}

/** How many rows at the start of each fragment an older version had, too; by the fragments' ids. */
type KnownRows = Map<bigint, bigint>;

/** Number of bits of a row's address below those of its fragment. */
const ROW_BITS = 32n;

/**
 * Returns the rows that a version of a table has beyond an older one; undefined if other changes than additions have
 * happened, or if it cannot be known.
 */
export async function addedRows(
  dataset: DatasetRef,
  older: Manifest,
  newer: Manifest,
): Promise<readonly RowRange[] | undefined> {
  if (!hasEqualFields(older, newer)) return undefined;
  const known = hasAllFragments(older, newer)
    ? rowsOf(older)
    : await followCompactions(dataset, older, newer);
  return known && rangesOf(newer, known);
}

/** Whether two versions have equal fields: renamed and re-created columns are in the same files under other names. */
function hasEqualFields(older: Manifest, newer: Manifest): boolean {
  const bytes = ({ fields }: Manifest) => Buffer.concat(fields.map((field) => toBinary(FieldSchema, field)));
  return bytes(older).equals(bytes(newer));
}

/** Whether a version has all fragments of an older one as they were, and others only after them. */
function hasAllFragments(older: Manifest, newer: Manifest): boolean {
  const before = new Map(
    older.fragments.map((fragment) => [fragment.id, toBinary(DataFragmentSchema, fragment)]),
  );
  let [last, kept] = [-1n, 0];
  for (const { id } of older.fragments) if (id > last) last = id;
  for (const fragment of newer.fragments) {
    const known = before.get(fragment.id);
    if (known === undefined && fragment.id > last) continue;
    if (known === undefined || Buffer.compare(known, toBinary(DataFragmentSchema, fragment)) !== 0)
      return false;
    kept++;
  }
  return kept === before.size;
}

/**
 * Finds the rows of an older version in a newer one, however often they were compacted in between; returns undefined if
 * rows were changed, or if it cannot be known.
 */
async function followCompactions(
  dataset: DatasetRef,
  older: Manifest,
  newer: Manifest,
): Promise<KnownRows | undefined> {
  if (newer.version - older.version > MAX_STEPS) return undefined;
  const known = rowsOf(older);
  let before = older;
  for (let version = older.version + 1n; version <= newer.version; version++) {
    const step = await readStep(dataset, version);
    if (step === undefined) return undefined;
    const { manifest, operation } = step;
    // A change of the schema left the columns as they were, or another one brought them back.
    if (!["append", "project"].includes(operation.case ?? "") && !KEEPING.has(operation.case))
      return undefined;
    const groups = operation.case === "rewrite" ? operation.value.groups : [];
    if (!groups.every((group) => followGroup(known, before, group))) return undefined;
    before = manifest;
    const ids = new Set(before.fragments.map(({ id }) => id));
    if ([...known.keys()].some((id) => !ids.has(id))) return undefined;
  }
  return known;
}

/**
 * Moves the known rows to the fragments that a compaction made. It keeps their order, so that they are together at the
 * start unless a new fragment was before an old one.
 *
 * @returns false if they are not
 */
function followGroup(
  known: KnownRows,
  before: Manifest,
  { oldFragments, newFragments }: Transaction_Rewrite_RewriteGroup,
): boolean {
  let [left, isEnded] = [0n, false];
  for (const { id } of oldFragments) {
    const fragment = before.fragments.find((each) => each.id === id);
    const rows = known.get(id) ?? 0n;
    if (fragment === undefined || (isEnded && rows > 0n)) return false;
    const isWhole = rows === fragment.physicalRows;
    // A fragment of which only a part is known has no deleted rows, because nothing was deleted since.
    left += isWhole ? rows - (fragment.deletionFile?.numDeletedRows ?? 0n) : rows;
    isEnded ||= !isWhole;
    known.delete(id);
  }
  for (const { id, physicalRows } of newFragments) {
    const rows = left < physicalRows ? left : physicalRows;
    if (rows > 0n) known.set(id, rows);
    left -= rows;
  }
  return left === 0n;
}

/** Returns all rows of a version as known ones. */
function rowsOf({ fragments }: Manifest): KnownRows {
  return new Map(fragments.map(({ id, physicalRows }) => [id, physicalRows]));
}

/** Returns the rows of a version that are not known, neighbours together. */
function rangesOf({ fragments }: Manifest, known: KnownRows): RowRange[] {
  const ranges: { from: bigint; to: bigint }[] = [];
  const unknown = fragments.filter(({ id, physicalRows }) => known.get(id) !== physicalRows);
  for (const { id } of unknown.sort(byId)) {
    const [from, to] = [(id << ROW_BITS) + (known.get(id) ?? 0n), (id + 1n) << ROW_BITS];
    const last = ranges.at(-1);
    if (last?.to === from) last.to = to;
    else ranges.push({ from, to });
  }
  return ranges;
}

function byId(a: DataFragment, b: DataFragment): number {
  return a.id < b.id ? -1 : 1;
}
