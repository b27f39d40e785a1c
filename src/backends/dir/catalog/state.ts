import { ownName, parentId, type Row } from "./row.ts";

/** What can be asked of the catalog's rows. */
export interface CatalogView {
  get(objectId: string): Row | undefined;
  /** The ids of everything below a namespace, direct or not; of everything for the root. */
  descendants(objectId: string): string[];
  hasChildren(objectId: string): boolean;
  /** The table whose directory this is. */
  ownerOf(location: string): string | undefined;
  /** The locations that are not directly in the base; there are few. */
  nestedLocations(): Iterable<string>;
}

/** Changes to the rows, by object id; undefined stands for a row that goes away. */
export type Changes = ReadonlyMap<string, Row | undefined>;

/** All rows of the manifest, indexed for lookups and for listings in order. */
export interface CatalogState extends CatalogView {
  /** The names of a namespace's direct children of one kind, in order, after a given one. */
  children(objectId: string, kind: "namespace" | "table", after: string, limit: number): string[];
  apply(changes: Changes): void;
  readonly size: number;
}

interface Children {
  readonly namespace: string[];
  readonly table: string[];
  /** Rows of any kind, those of unknown kinds included. */
  count: number;
}

/** Indexes rows; of two rows with one id the first counts. */
export function createState(rows: Iterable<Row>): CatalogState {
  const byId = new Map<string, Row>();
  const byLocation = new Map<string, string>();
  const nested = new Set<string>();
  const byParent = new Map<string, Children>();

  function childrenOf(parent: string): Children {
    let children = byParent.get(parent);
    if (children === undefined) {
      children = { namespace: [], table: [], count: 0 };
      byParent.set(parent, children);
    }
    return children;
  }
  function index(row: Row): Children {
    byId.set(row.objectId, row);
    if (row.location !== undefined) byLocation.set(row.location, row.objectId);
    if (row.location?.includes("/")) nested.add(row.location);
    const children = childrenOf(parentId(row.objectId));
    children.count++;
    return children;
  }
  function remove(objectId: string): void {
    const row = byId.get(objectId);
    if (row === undefined) return;
    byId.delete(objectId);
    if (row.location !== undefined && byLocation.get(row.location) === objectId) {
      byLocation.delete(row.location);
      nested.delete(row.location);
    }
    const children = childrenOf(parentId(objectId));
    children.count--;
    const names = isListed(row) ? children[row.objectType] : [];
    const at = lowerBound(names, ownName(objectId));
    if (names[at] === ownName(objectId)) names.splice(at, 1);
  }

  for (const row of rows) {
    if (byId.has(row.objectId)) continue;
    const children = index(row);
    if (isListed(row)) children[row.objectType].push(ownName(row.objectId));
  }
  for (const { namespace, table } of byParent.values()) {
    namespace.sort(compare);
    table.sort(compare);
  }

  const view: CatalogState = {
    get: (objectId) => byId.get(objectId),
    descendants(objectId) {
      const prefix = objectId === "" ? "" : `${objectId}$`;
      return [...byId.keys()].filter((id) => id !== objectId && id.startsWith(prefix));
    },
    hasChildren: (objectId) => (byParent.get(objectId)?.count ?? 0) > 0,
    ownerOf: (location) => byLocation.get(location),
    nestedLocations: () => nested,
    children(objectId, kind, after, limit) {
      const names = byParent.get(objectId)?.[kind] ?? [];
      let start = lowerBound(names, after);
      if (names[start] === after) start++;
      return names.slice(start, start + limit);
    },
    apply(changes) {
      for (const [objectId, row] of changes) {
        remove(objectId);
        if (row === undefined) continue;
        const children = index(row);
        if (!isListed(row)) continue;
        const names = children[row.objectType];
        names.splice(lowerBound(names, ownName(objectId)), 0, ownName(objectId));
      }
    },
    get size() {
      return byId.size;
    },
  };
  return view;
}

/** A draft: a state with changes on top of it, which later changes see. */
export interface Draft extends CatalogView {
  put(row: Row): void;
  delete(objectId: string): void;
  readonly changes: Changes;
}

/** Begins a draft of changes to a state. */
export function createDraft(base: CatalogView): Draft {
  const changes = new Map<string, Row | undefined>();
  const get = (id: string) => (changes.has(id) ? changes.get(id) : base.get(id));
  const locationOwner = (location: string) => {
    for (const row of changes.values()) if (row?.location === location) return row.objectId;
    const owner = base.ownerOf(location);
    return owner !== undefined && get(owner)?.location === location ? owner : undefined;
  };
  function descendants(objectId: string): string[] {
    const prefix = objectId === "" ? "" : `${objectId}$`;
    const added = [...changes.keys()].filter(
      (id) => id !== objectId && id.startsWith(prefix) && base.get(id) === undefined,
    );
    return [...base.descendants(objectId), ...added].filter((id) => get(id) !== undefined);
  }
  return {
    get,
    descendants,
    hasChildren(objectId) {
      for (const [id, row] of changes) if (row !== undefined && parentId(id) === objectId) return true;
      if (!base.hasChildren(objectId)) return false;
      return changes.size === 0 || descendants(objectId).length > 0;
    },
    ownerOf: locationOwner,
    *nestedLocations() {
      for (const location of base.nestedLocations())
        if (locationOwner(location) !== undefined) yield location;
      for (const row of changes.values()) if (row?.location?.includes("/")) yield row.location;
    },
    put(row) {
      changes.set(row.objectId, row);
    },
    delete(objectId) {
      if (base.get(objectId) === undefined) changes.delete(objectId);
      else changes.set(objectId, undefined);
    },
    changes,
  };
}

function isListed(row: Row): row is Row & { objectType: "namespace" | "table" } {
  return row.objectType === "namespace" || row.objectType === "table";
}

/** The first place whose name is not before the given one. */
function lowerBound(names: readonly string[], name: string): number {
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((names[middle] as string) < name) low = middle + 1;
    else high = middle;
  }
  return low;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
