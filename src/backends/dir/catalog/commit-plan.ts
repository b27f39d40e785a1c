import type { DataFragment, Manifest } from "../../../gen/lance/format/table_pb.ts";
import { isPlainFragment, type RowFormat } from "./row-fragment.ts";
import type { CatalogState } from "./state.ts";
import { type StoredRow, toStored } from "./stored-row.ts";
import type { Changes } from "./view.ts";

/** What a commit does to the fragments of the manifest table. */
export interface CommitPlan {
  /** The rows of the new fragment, in their order. */
  readonly rows: readonly StoredRow[];
  /** The fragments that go: their rows are in the new one, or none is left. */
  readonly removed: ReadonlySet<bigint>;
  /** The fragments that lose rows, and the offsets of those. */
  readonly thinned: ReadonlyMap<DataFragment, ReadonlySet<number>>;
}

/** Rows of fragments by the offset, for those that a commit writes anew. */
export type RowSource = (fragments: readonly DataFragment[]) => ReadonlyMap<bigint, readonly StoredRow[]>;

/** A fragment with as many rows is not written anew by commits: what a commit writes stays small. */
export const REWRITE_BELOW_ROWS = 4096;

/**
 * Plans the commit of changes to a state.
 *
 * The new fragment takes over the small ones that commits before left, as long as they are no larger than itself:
 * each row is written a few times more, as often as its fragment doubles, and the number of small fragments stays
 * that of the binary digits of {@link REWRITE_BELOW_ROWS}.
 */
export function planCommit(
  manifest: Manifest,
  format: RowFormat,
  state: CatalogState,
  changes: Changes,
  rowsOf: RowSource,
): CommitPlan {
  const lost = lostRows(manifest, state, changes);
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
 * The state does not say where all rows are that a commit concerns, so the commit would lose rows or leave some. The
 * manifest has to be read as a whole again.
 */
export class StateMismatch extends Error {}

/** The rows that a fragment still has. */
export function liveRows({ physicalRows, deletionFile }: DataFragment): number {
  return Number(physicalRows - (deletionFile?.numDeletedRows ?? 0n));
}

/** Where the rows are that go or are replaced, by fragment. */
function lostRows(
  { fragments }: Manifest,
  state: CatalogState,
  changes: Changes,
): Map<DataFragment, Set<number>> {
  const byId = new Map(fragments.map((fragment) => [Number(fragment.id), fragment]));
  const lost = new Map<DataFragment, Set<number>>();
  for (const objectId of changes.keys()) {
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

/** The small fragments that lose rows, and as many of the others as the new one is large enough for. */
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
