import { toBinary } from "@bufbuild/protobuf";
import { FieldSchema } from "../../../../gen/lance/format/file_pb.ts";
import { DataFragmentSchema, type Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { Transaction } from "../../../../gen/lance/format/transaction_pb.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { readTransactionMessage } from "../../format/transaction-records.ts";
import { readVersion } from "../../format/version-files.ts";

/** Fragments by their ids, from the first to before the last. */
export interface FragmentRange {
  readonly from: bigint;
  readonly to: bigint;
}

/** Maximum number of versions that are read to follow the compactions between two versions. */
const MAX_VERSIONS = 1_000n;

/**
 * Returns the fragments with the rows that a version of a table has beyond an older one; undefined if other changes
 * than additions have happened, or if it cannot be known.
 */
export async function addedFragments(
  dataset: DatasetRef,
  older: Manifest,
  newer: Manifest,
): Promise<readonly FragmentRange[] | undefined> {
  if (!hasEqualFields(older, newer)) return undefined;
  const known = hasAllFragments(older, newer) ? idsOf(older) : await followCompactions(dataset, older, newer);
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

/** Operations that neither change nor remove rows. */
const HARMLESS: ReadonlySet<Transaction["operation"]["case"]> = new Set([
  "append",
  "createIndex",
  "reserveFragments",
  "rewrite",
]);

/**
 * Returns the fragments of a version that have the rows of an older one and no others, however often they were
 * compacted in between; undefined if rows were changed, or if old and new rows were joined.
 */
async function followCompactions(
  dataset: DatasetRef,
  older: Manifest,
  newer: Manifest,
): Promise<ReadonlySet<bigint> | undefined> {
  if (newer.version - older.version > MAX_VERSIONS) return undefined;
  let [known, before] = [idsOf(older), idsOf(older)];
  for (let version = older.version + 1n; version <= newer.version; version++) {
    const file = await readVersion(dataset, version).catch(ifGone);
    const transaction = file && (await readTransactionMessage(dataset, file));
    if (file === undefined || !HARMLESS.has(transaction?.operation.case)) return undefined;
    const after = idsOf(file.manifest);
    const removed = before.difference(after);
    const removedKnown = removed.intersection(known).size;
    if (removedKnown > 0) {
      if (removedKnown < removed.size) return undefined;
      known = known.union(after.difference(before)).intersection(after);
    }
    before = after;
  }
  return known;
}

function idsOf({ fragments }: Manifest): Set<bigint> {
  return new Set(fragments.map(({ id }) => id));
}

/** Returns the fragments of a version that are not in a set, neighbours together. */
function rangesOf({ fragments }: Manifest, known: ReadonlySet<bigint>): FragmentRange[] {
  const ranges: { from: bigint; to: bigint }[] = [];
  let isOpen = false;
  for (const id of fragments.map((fragment) => fragment.id).sort((a, b) => (a < b ? -1 : 1))) {
    const last = ranges.at(-1);
    if (known.has(id)) isOpen = false;
    else if (isOpen && last !== undefined) last.to = id + 1n;
    else isOpen = ranges.push({ from: id, to: id + 1n }) > 0;
  }
  return ranges;
}

function ifGone(error: unknown): undefined {
  if (!isLanceError(error, "TableVersionNotFound")) throw error;
}
