import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { atOnce } from "../../../../runtime/pace.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import { createDraft } from "../state/draft.ts";
import { growthOf } from "../state/properties-size.ts";
import type { PlacedRow, RowAddress, StoredRow } from "../state/rows/stored-row.ts";
import type { CatalogState } from "../state/state.ts";
import type { CatalogView, Changes, Verdict } from "../state/view.ts";
import { isPlainFragment, rowFormatOf } from "./row-fragment.ts";

/** The part of a state from which a commit is decided and planned. */
export type BaseState = CatalogView &
  Pick<
    CatalogState,
    "addressesOf" | "duplicates" | "propertiesBytes" | "remainingIn" | "revision" | "rowsIn"
  >;

/** A version on which a commit is based. */
export interface CommitBase {
  readonly version: number;
  readonly state: BaseState;
  /** Revision of the state at which it is that of the version. Default: any that it has when work on it begins. */
  readonly revision?: number;
  /** The manifest of a version that is still being published. Default: the version is stored. */
  readonly file?: ManifestFile;
}

/** Effect of a commit on the state before it. */
export interface AppliedCommit {
  readonly changes: Changes;
  readonly recorded: ReadonlyMap<string, Verdict>;
  /** Rows of the new fragment, in order: those that are put, and those that are moved. */
  readonly rows: readonly StoredRow[];
  /** Addresses of these rows. */
  readonly addresses: ReadonlyMap<string, RowAddress>;
}

/**
 * Returns the state after a commit that may still fail. It remains right when the commit has been applied to the
 * underlying state, which has no duplicate ids.
 */
export function stateAfter(state: CatalogState, commit: AppliedCommit): BaseState {
  const { changes, recorded, rows, addresses } = commit;
  const draft = createDraft(state);
  // Counted here: the underlying state gets the changes later.
  const propertiesBytes = state.propertiesBytes + atOnce(growthOf(state, changes));
  for (const [objectId, row] of changes) {
    if (row === undefined) draft.delete(objectId);
    else draft.put(row);
  }
  for (const [changeId, verdict] of recorded) draft.record(changeId, verdict);
  const hasMoved = (objectId: string) => changes.has(objectId) || addresses.has(objectId);
  const placed = rows.map((row): PlacedRow => ({ ...row, ...(addresses.get(row.objectId) as RowAddress) }));
  return {
    ...draft,
    propertiesBytes,
    get revision() {
      return state.revision;
    },
    get duplicates() {
      return state.duplicates;
    },
    addressesOf(objectId) {
      const address = addresses.get(objectId);
      if (address !== undefined) return [address];
      return changes.has(objectId) ? undefined : state.addressesOf(objectId);
    },
    *rowsIn(fragments) {
      for (const row of state.rowsIn(fragments)) if (!hasMoved(row.objectId)) yield row;
      for (const row of placed) if (fragments.has(row.fragment)) yield row;
    },
    remainingIn(fragment, physicalRows) {
      const remaining = state.remainingIn(fragment, physicalRows);
      for (const objectId of [...changes.keys(), ...addresses.keys()])
        for (const before of state.addressesOf(objectId) ?? [])
          if (before.fragment === fragment) remaining[before.offset] = 0;
      for (const row of placed) if (row.fragment === fragment) remaining[row.offset] = 1;
      return remaining;
    },
  };
}

/**
 * Returns a condition that finds the rows that would lose values in a commit: the commit rewrites them without the
 * columns that are unknown here, in which other writers may have put values.
 *
 * @returns undefined if there cannot be any
 */
export function foreignValues(manifest: Manifest, state: BaseState, changes: Changes): string | undefined {
  const format = rowFormatOf(manifest);
  if (format.otherColumns.length === 0) return undefined;
  const plain = new Set(
    manifest.fragments.filter((fragment) => isPlainFragment(fragment, format)).map(({ id }) => Number(id)),
  );
  const ids = rewrittenIds(state, changes).filter((id) =>
    state.addressesOf(id)?.some(({ fragment }) => !plain.has(fragment)),
  );
  if (ids.length === 0) return undefined;
  const values = format.otherColumns.map(({ name }) => `\`${name}\` IS NOT NULL`);
  return `object_id IN (${ids.map(quoted).join(", ")}) AND (${values.join(" OR ")})`;
}

/** Returns the ids of rows that remain in another form: replaced, or renamed with the directory that they keep. */
export function rewrittenIds(state: CatalogView, changes: Changes): string[] {
  const locations = new Set<string>();
  for (const row of changes.values()) if (row?.location !== undefined) locations.add(row.location);
  const ids: string[] = [];
  for (const [id, row] of changes) {
    const before = state.get(id);
    if (before === undefined) continue;
    if (row !== undefined || locations.has(before.location ?? "")) ids.push(id);
  }
  return ids;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
