import type { DataFragment, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { StoredRow } from "../state/rows/stored-row.ts";
import type { BaseState } from "./commit-base.ts";
import { liveRows, StateMismatch } from "./commit-plan.ts";
import { fileNameOf } from "./row-fragment.ts";

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
