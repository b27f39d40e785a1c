import { clone, create } from "@bufbuild/protobuf";
import type { DataFragment, Manifest } from "../../../gen/lance/format/table_pb.ts";
import { DataFragmentSchema } from "../../../gen/lance/format/table_pb.ts";
import type { Transaction } from "../../../gen/lance/format/transaction_pb.ts";
import {
  Transaction_Update_UpdateMode,
  Transaction_UpdateSchema,
} from "../../../gen/lance/format/transaction_pb.ts";
import { FLAG_DELETION_FILES, largestFragmentId } from "./manifest.ts";

/** A change of rows, by fragments. */
export interface RowsChange {
  /** The fragments that go. */
  readonly removed: ReadonlySet<bigint>;
  /** The fragments that lose rows, as they are afterwards. */
  readonly updated: readonly DataFragment[];
  /** A new fragment; its id is drawn from the table's. */
  readonly added: DataFragment | undefined;
}

/** A manifest with a change in it, which shares what is the same with the one before. */
export interface ChangedRows {
  readonly manifest: Manifest;
  readonly operation: Transaction["operation"];
  /** The id of the fragment that was added. */
  readonly addedId: bigint;
}

/**
 * Puts a change of rows into a manifest.
 *
 * It is an `Update`, also where rows are only added or only removed: writers of the engine that insert by a key
 * take every `Update` without a filter of keys for a conflict and decide again on the new version, while they
 * would follow an `Append` or a `Delete` unasked.
 */
export function changeRows(before: Manifest, { removed, updated, added }: RowsChange): ChangedRows {
  const byId = new Map(updated.map((fragment) => [fragment.id, fragment]));
  const fragments = before.fragments
    .filter(({ id }) => !removed.has(id))
    .map((fragment) => byId.get(fragment.id) ?? fragment);
  const addedId = nextFragmentId(before);
  if (added !== undefined) fragments.push({ ...added, id: addedId });
  const maxFragmentId = added === undefined ? largestFragmentId(before) : addedId;
  const deletes = fragments.some(({ deletionFile }) => deletionFile !== undefined);
  const manifest: Manifest = {
    ...before,
    fragments,
    readerFeatureFlags: withDeletions(before.readerFeatureFlags, deletes),
    writerFeatureFlags: withDeletions(before.writerFeatureFlags, deletes),
    ...(maxFragmentId !== undefined && { maxFragmentId: Number(maxFragmentId) }),
  };
  const value = create(Transaction_UpdateSchema, {
    removedFragmentIds: [...removed],
    updatedFragments: [...updated],
    newFragments: added === undefined ? [] : [Object.assign(clone(DataFragmentSchema, added), { id: 0n })],
    updateMode: Transaction_Update_UpdateMode.REWRITE_ROWS,
  });
  return { manifest, operation: { case: "update", value }, addedId };
}

/** The id of the next new fragment. */
export function nextFragmentId(manifest: Manifest): bigint {
  return (largestFragmentId(manifest) ?? -1n) + 1n;
}

function withDeletions(flags: bigint, deletes: boolean): bigint {
  return deletes ? flags | FLAG_DELETION_FILES : flags & ~FLAG_DELETION_FILES;
}
