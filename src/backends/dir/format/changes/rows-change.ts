import { create } from "@bufbuild/protobuf";
import type { DataFragment, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { Transaction } from "../../../../gen/lance/format/transaction_pb.ts";
import {
  Transaction_Update_UpdateMode,
  Transaction_UpdateSchema,
} from "../../../../gen/lance/format/transaction_pb.ts";
import { copyMessage } from "../files/copy-message.ts";
import { FLAG_DELETION_FILES, largestFragmentId } from "../files/manifest.ts";

/** A change of rows, by fragments. */
export interface RowsChange {
  /** Fragments to remove. */
  readonly removed: ReadonlySet<bigint>;
  /** Fragments that lose rows, in their new form. */
  readonly updated: readonly DataFragment[];
  /** A new fragment; the change assigns its id. */
  readonly added: DataFragment | undefined;
}

/** A manifest with a change in it, which shares unchanged parts with the previous one. */
export interface ChangedRows {
  readonly manifest: Manifest;
  readonly operation: Transaction["operation"];
  /** Id of the added fragment. */
  readonly addedId: bigint;
}

/**
 * Applies a change of rows to a manifest.
 *
 * It records an `Update`, even if rows are only added or only removed. Writers of the engine that insert by a key treat
 * every `Update` without a filter of keys as a conflict and decide again on the new version, whereas they follow an
 * `Append` or a `Delete` without deciding again.
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
    newFragments: added === undefined ? [] : [Object.assign(copyMessage(added), { id: 0n })],
    updateMode: Transaction_Update_UpdateMode.REWRITE_ROWS,
  });
  return { manifest, operation: { case: "update", value }, addedId };
}

/** Returns the id of the next new fragment. */
export function nextFragmentId(manifest: Manifest): bigint {
  return (largestFragmentId(manifest) ?? -1n) + 1n;
}

function withDeletions(flags: bigint, deletes: boolean): bigint {
  return deletes ? flags | FLAG_DELETION_FILES : flags & ~FLAG_DELETION_FILES;
}
