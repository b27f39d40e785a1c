import { firstAfter, parentId, type Row } from "./row.ts";
import type { CatalogView, Changes, Verdict } from "./view.ts";

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
  /** The changed rows that exist, by the ids of their parents. */
  const put = new Map<string, Set<string>>();
  /** The locations of changed rows that are not directly in the base, in order. */
  const nested: string[] = [];
  const get = (id: string) => (changes.has(id) ? changes.get(id) : base.get(id));
  const locationOwner = (location: string) => {
    const changed = owners.get(location);
    if (changed !== undefined) return changed;
    const owner = base.ownerOf(location);
    return owner !== undefined && get(owner)?.location === location ? owner : undefined;
  };
  function change(objectId: string, row: Row | undefined): void {
    const location = changes.get(objectId)?.location;
    if (location !== undefined && owners.get(location) === objectId) dropLocation(location);
    if (row?.location !== undefined) addLocation(row.location, objectId);
    changes.set(objectId, row);
    const parent = parentId(objectId);
    const siblings = put.get(parent) ?? new Set();
    if (row === undefined) siblings.delete(objectId);
    else put.set(parent, siblings.add(objectId));
    if (siblings.size === 0) put.delete(parent);
  }
  function dropLocation(location: string): void {
    owners.delete(location);
    if (location.includes("/")) nested.splice(firstAfter(nested, location) - 1, 1);
  }
  function addLocation(location: string, objectId: string): void {
    if (location.includes("/") && !owners.has(location)) {
      nested.splice(firstAfter(nested, location), 0, location);
    }
    owners.set(location, objectId);
  }
  function* descendants(objectId: string): IterableIterator<string> {
    const prefix = objectId === "" ? "" : `${objectId}$`;
    // A copy of the changed ids, because the caller may delete rows during the iteration.
    const changed: string[] = [];
    for (const [parent, ids] of put) {
      if (parent === objectId || parent.startsWith(prefix)) changed.push(...ids);
    }
    for (const id of base.descendants(objectId)) if (get(id) !== undefined) yield id;
    for (const id of changed) if (get(id) !== undefined && base.get(id) === undefined) yield id;
  }
  return {
    get,
    descendants,
    hasChildren(objectId) {
      if (put.has(objectId)) return true;
      if (!base.hasChildren(objectId)) return false;
      for (const id of base.descendants(objectId)) {
        if (parentId(id) === objectId && get(id) !== undefined) return true;
      }
      return false;
    },
    ownerOf: locationOwner,
    *locationsInside(directory) {
      for (const location of base.locationsInside(directory))
        if (locationOwner(location) !== undefined) yield location;
      const start = `${directory}/`;
      for (let at = firstAfter(nested, start); nested[at]?.startsWith(start); at++) {
        yield nested[at] as string;
      }
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
