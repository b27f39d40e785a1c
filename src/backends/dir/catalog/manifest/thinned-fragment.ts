import type { DataFragment } from "../../../../gen/lance/format/table_pb.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { deletionKey, newDeletionFile } from "../../format/files/deletion-file.ts";
import type { BaseState } from "./commit-base.ts";
import { checkRowCount } from "./fragment-rows.ts";

/** A fragment that a commit takes rows from. */
export interface ThinnedFragment {
  /** The fragment with the file of its deleted rows, which is not written yet. */
  readonly fragment: DataFragment;
  /** Offsets of all its deleted rows: the earlier ones and those of the commit. */
  readonly offsets: Uint32Array;
}

/**
 * Takes rows from a fragment of a version.
 *
 * @param lost offsets of the rows
 * @throws StateMismatch
 */
export function thinFragment(
  version: bigint,
  state: BaseState,
  fragment: DataFragment,
  lost: ReadonlySet<number>,
): ThinnedFragment {
  const size = Number(fragment.physicalRows);
  const remaining = state.remainingIn(Number(fragment.id), size);
  checkRowCount(state, fragment, countOf(remaining));
  if (fragment.deletionFile === undefined) remaining.fill(1);
  for (const offset of lost) remaining[offset] = 0;
  const offsets = missingIn(remaining);
  const deletionFile = newDeletionFile(version, offsets.length);
  return { fragment: { ...fragment, deletionFile }, offsets };
}

/** Writes the file of a fragment's deleted rows. The encoder, and Arrow with it, is loaded by the first commit that deletes any. */
export async function writeDeletions(
  dataset: DatasetRef,
  { fragment, offsets }: ThinnedFragment,
): Promise<void> {
  const { encodeDeletions } = await import("../../format/files/deleted-rows.ts");
  await dataset.store.create(deletionKey(dataset, fragment) as string, encodeDeletions(offsets));
}

function countOf(marks: Uint8Array): number {
  let count = 0;
  // A fragment may have a million rows, for which a plain loop takes a tenth of the time of callbacks.
  for (let i = 0; i < marks.length; i++) count += marks[i] as number;
  return count;
}

/** Returns the offsets without a mark. */
function missingIn(marks: Uint8Array): Uint32Array {
  const offsets = new Uint32Array(marks.length - countOf(marks));
  for (let offset = 0, at = 0; offset < marks.length; offset++)
    if (marks[offset] === 0) offsets[at++] = offset;
  return offsets;
}
