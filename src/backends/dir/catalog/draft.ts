import { parentId, type Row } from "./row.ts";
import type { Verdict } from "./verdicts.ts";
import type { CatalogView, Changes } from "./view.ts";

/** A draft: a state with changes on top of it, which later changes see. */
export interface Draft extends CatalogView {
  put(row: Row): void;
  delete(objectId: string): void;
  readonly changes: Changes;
  /** Records the verdict of a change, unless it already has one; returns the effective verdict. */
  record(changeId: string, verdict: Verdict): Verdict;
  /** Verdicts that have been recorded in this draft. */
  readonly recorded: ReadonlyMap<string, Verdict>;
}

/** Creates a draft of changes to a state. */
export function createDraft(base: CatalogView): Draft {
  const changes = new Map<string, Row | undefined>();
  const recorded = new Map<string, Verdict>();
  const verdictOf = (changeId: string) => recorded.get(changeId) ?? base.verdictOf(changeId);
  /** The changed rows by their locations. */
  const owners = new Map<string, string>();
  const get = (id: string) => (changes.has(id) ? changes.get(id) : base.get(id));
  const locationOwner = (location: string) => {
    const changed = owners.get(location);
    if (changed !== undefined) return changed;
    const owner = base.ownerOf(location);
    return owner !== undefined && get(owner)?.location === location ? owner : undefined;
  };
  function change(objectId: string, row: Row | undefined): void {
    const location = changes.get(objectId)?.location;
    if (location !== undefined && owners.get(location) === objectId) owners.delete(location);
    if (row?.location !== undefined) owners.set(row.location, objectId);
    changes.set(objectId, row);
  }
  function* descendants(objectId: string): IterableIterator<string> {
    const prefix = objectId === "" ? "" : `${objectId}$`;
    // A copy of the changed ids, because the caller may delete rows during the iteration.
    const changed = [...changes.keys()];
    for (const id of base.descendants(objectId)) if (get(id) !== undefined) yield id;
    for (const id of changed) {
      if (id === objectId || !id.startsWith(prefix)) continue;
      if (get(id) !== undefined && base.get(id) === undefined) yield id;
    }
  }
  return {
    get,
    descendants,
    hasChildren(objectId) {
      for (const [id, row] of changes) if (row !== undefined && parentId(id) === objectId) return true;
      if (!base.hasChildren(objectId)) return false;
      for (const id of base.descendants(objectId)) {
        if (parentId(id) === objectId && get(id) !== undefined) return true;
      }
      return false;
    },
    ownerOf: locationOwner,
    *nestedLocations() {
      for (const location of base.nestedLocations())
        if (locationOwner(location) !== undefined) yield location;
      for (const row of changes.values()) if (row?.location?.includes("/")) yield row.location;
    },
    put(row) {
      change(row.objectId, row);
    },
    delete(objectId) {
      change(objectId, undefined);
      if (base.get(objectId) === undefined) changes.delete(objectId);
    },
    changes,
    verdictOf,
    record(changeId, verdict) {
      const known = verdictOf(changeId);
      if (known === undefined) recorded.set(changeId, verdict);
      return known ?? verdict;
    },
    recorded,
  };
}
