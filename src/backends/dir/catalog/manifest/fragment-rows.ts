import type { DataFragment, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { deletionKey, newDeletionFile } from "../../format/files/deletion-file.ts";
import type { StoredRow } from "../state/rows/stored-row.ts";
import { type BaseState, fileNameOf } from "./commit-base.ts";
import { liveRows, StateMismatch } from "./commit-plan.ts";

/** The rows of plain fragments: those of the last commits from memory, the others from the state. */
export interface FragmentRows {
  /**
   * Returns the rows of fragments, without those that their deletion files list.
   *
   * @throws StateMismatch
   */
  of(fragments: readonly DataFragment[], state: BaseState): Map<bigint, readonly StoredRow[]>;
  /** Remembers the rows of the fragment that a commit adds, and no longer those of fragments that the commit lacks. */
  note(manifest: Manifest, added: DataFragment | undefined, rows: readonly StoredRow[]): void;
}

/** Maximum number of remembered rows of small fragments, which need not be looked up in the state. */
const REMEMBERED_ROWS = 16_384;

/** Creates the rows of a manifest table's fragments. */
export function createFragmentRows(): FragmentRows {
  let remembered = new Map<string, readonly StoredRow[]>();
  return {
    of(fragments, state) {
      const found = new Map<bigint, readonly StoredRow[]>();
      const missing = new Map<number, StoredRow[]>();
      for (const fragment of fragments) {
        const rows = remembered.get(fileNameOf(fragment));
        if (rows !== undefined && fragment.deletionFile === undefined) found.set(fragment.id, rows);
        else missing.set(Number(fragment.id), []);
      }
      if (missing.size > 0) {
        for (const row of state.rowsIn(new Set(missing.keys()))) missing.get(row.fragment)?.push(row);
      }
      for (const [id, rows] of missing) found.set(BigInt(id), rows);
      for (const fragment of fragments) checkRowCount(state, fragment, found.get(fragment.id)?.length ?? 0);
      return found;
    },
    note({ fragments }, added, rows) {
      const next = new Map<string, readonly StoredRow[]>();
      let size = 0;
      if (added !== undefined && rows.length <= REMEMBERED_ROWS) next.set(fileNameOf(added), rows);
      for (const fragment of [...fragments].reverse()) {
        const known = remembered.get(fileNameOf(fragment));
        if (known === undefined || size + known.length > REMEMBERED_ROWS) continue;
        size += known.length;
        next.set(fileNameOf(fragment), known);
      }
      remembered = next;
    },
  };
}

/** @throws StateMismatch unless a state knows as many rows of a fragment as exist */
export function checkRowCount({ duplicates }: BaseState, fragment: DataFragment, known: number): void {
  const live = liveRows(fragment);
  // Of an id that a foreign writer has duplicated, only the first row counts.
  if (known === live || (duplicates > 0 && known < live)) return;
  throw new StateMismatch(`fragment ${fragment.id} has ${live} rows, of which ${known} are known`);
}

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
  const { encodeDeletions } = await import("../../format/files/deletion-file.ts");
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
