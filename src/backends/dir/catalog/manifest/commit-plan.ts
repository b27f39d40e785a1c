import type { DataFragment, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../../runtime/pace.ts";
import { type StoredRow, toStored } from "../state/rows/stored-row.ts";
import type { Changes } from "../state/view.ts";
import { type BaseState, isPlainFragment, type RowFormat } from "./commit-base.ts";

/** Effect of a commit on the fragments of the manifest table. */
export interface CommitPlan {
  /** Rows of the new fragment, in order. */
  readonly rows: readonly StoredRow[];
  /** Fragments to remove: their rows are in the new fragment, or none remains. */
  readonly removed: ReadonlySet<bigint>;
  /** Fragments that lose rows, with the offsets of those rows. */
  readonly thinned: ReadonlyMap<DataFragment, ReadonlySet<number>>;
}

/** Returns the rows of fragments that a commit rewrites, by offset. */
export type RowSource = (fragments: readonly DataFragment[]) => ReadonlyMap<bigint, readonly StoredRow[]>;

/** Number of rows from which on commits do not rewrite a fragment, so that the writes of a commit remain small. */
export const REWRITE_BELOW_ROWS = 4096;

/**
 * Plans the commit of changes to a state.
 *
 * The new fragment absorbs small fragments of earlier commits, as long as they are not larger than itself. Each row is
 * therefore written a few times, once for each doubling of its fragment, and there are at most as many small fragments
 * as {@link REWRITE_BELOW_ROWS} has binary digits.
 */
export function* planCommit(
  manifest: Manifest,
  format: RowFormat,
  state: BaseState,
  changes: Changes,
  rowsOf: RowSource,
): Steps<CommitPlan> {
  const lost = yield* lostRows(manifest, state, changes);
  const small = manifest.fragments.filter(
    (fragment) => liveRows(fragment) < REWRITE_BELOW_ROWS && isPlainFragment(fragment, format),
  );
  const put = [...changes.values()].filter((row) => row !== undefined).map(toStored);
  const absorbed = chooseAbsorbed(small, lost, put.length);
  const kept = [...rowsOf(absorbed).values()].flat().filter(({ objectId }) => !changes.has(objectId));
  const removed = new Set(absorbed.map(({ id }) => id));
  const thinned = [...lost].filter(([{ id }]) => !removed.has(id));
  for (const [fragment, offsets] of thinned) {
    if (liveRows(fragment) === offsets.size) removed.add(fragment.id);
  }
  return {
    rows: [...kept, ...put],
    removed,
    thinned: new Map(thinned.filter(([{ id }]) => !removed.has(id))),
  };
}

/**
 * The state does not know the places of all rows that a commit affects, so the commit would lose or duplicate rows. The
 * whole manifest must be read again.
 */
export class StateMismatch extends Error {}

/** Returns the number of rows that a fragment still has. */
export function liveRows({ physicalRows, deletionFile }: DataFragment): number {
  return Number(physicalRows - (deletionFile?.numDeletedRows ?? 0n));
}

/** Returns the places of removed and replaced rows, by fragment. */
function* lostRows(
  { fragments }: Manifest,
  state: BaseState,
  changes: Changes,
): Steps<Map<DataFragment, Set<number>>> {
  const byId = new Map(fragments.map((fragment) => [Number(fragment.id), fragment]));
  const lost = new Map<DataFragment, Set<number>>();
  let count = 0;
  for (const objectId of changes.keys()) {
    if (++count % ITEMS_PER_STEP === 0) yield;
    const addresses = state.addressesOf(objectId);
    if (addresses === undefined && state.get(objectId) !== undefined) {
      throw new StateMismatch("the row of an object has no known address");
    }
    for (const { fragment: id, offset } of addresses ?? []) {
      const fragment = byId.get(id);
      if (fragment === undefined || offset >= fragment.physicalRows) {
        throw new StateMismatch(`the manifest has no row ${offset} in a fragment ${id}`);
      }
      const offsets = lost.get(fragment) ?? new Set();
      lost.set(fragment, offsets.add(offset));
    }
  }
  return lost;
}

/** Chooses the small fragments that lose rows, and as many others as fit the size of the new one. */
function chooseAbsorbed(
  small: readonly DataFragment[],
  lost: ReadonlyMap<DataFragment, ReadonlySet<number>>,
  put: number,
): DataFragment[] {
  const absorbed = small.filter((fragment) => lost.has(fragment));
  let size = put;
  for (const fragment of absorbed) size += liveRows(fragment) - (lost.get(fragment)?.size ?? 0);
  const others = small.filter((fragment) => !lost.has(fragment));
  for (const fragment of others.sort((a, b) => liveRows(a) - liveRows(b))) {
    if (size === 0 || liveRows(fragment) > size || size >= REWRITE_BELOW_ROWS) break;
    absorbed.push(fragment);
    size += liveRows(fragment);
  }
  return absorbed;
}
