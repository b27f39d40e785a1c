import { atOnce, ITEMS_PER_STEP, type Steps } from "../../../../runtime/pace.ts";
import { createMemory, type Memory } from "./memory.ts";
import type { Row, VIEW_KIND } from "./row.ts";
import { createIndexedRows, type IndexedRows, type SharedRows } from "./rows/indexed-rows.ts";
import { compareBytes, compareKeys, isChild, parentEnd, type RowKey } from "./rows/row-key.ts";
import type { PlacedRow, RowAddress } from "./rows/stored-row.ts";
import { type Delta, NO_FRAGMENT, parseProperties, type RowBatch, toBatch } from "./rows/stored-row.ts";
import type { CatalogView, Changes } from "./view.ts";
import { NO_FACTS, type VersionFacts } from "./view.ts";

/** All rows of the manifest, indexed for lookups and for listings in order. */
export interface CatalogState extends CatalogView {
  /** Number that grows with each change of the state. */
  readonly revision: number;
  /** The facts of the version; a load of another version replaces them. */
  facts: VersionFacts;
  readonly verdicts: VersionFacts["verdicts"];
  /**
   * Returns the names of a namespace's direct children of a kind after a given name, in the order of their UTF-8 bytes.
   */
  children(
    objectId: string,
    kind: "namespace" | "table" | typeof VIEW_KIND,
    after: string,
    limit: number,
  ): string[];
  /**
   * Returns the places of the rows with an id, which a deletion vector must list to remove the object. Normally there
   * is a single place, and more if a foreign writer has duplicated the id. Undefined if the row does not exist, or was
   * applied without its address.
   */
  addressesOf(objectId: string): readonly RowAddress[] | undefined;
  /**
   * Applies a commit of this process in place.
   *
   * @param addresses new places of the rows that were put or moved, by object id; the address of a put row without an
   *   entry is unknown until the manifest is read again
   */
  apply(changes: Changes, addresses?: ReadonlyMap<string, RowAddress>): void;
  /** Applies commits of other processes in place. */
  merge(delta: Delta): void;
  /**
   * Yields the rows in some fragments in their stored form, for a commit that rewrites them; of an id that a foreign
   * writer has duplicated, the first.
   */
  rowsIn(fragments: ReadonlySet<number>): Iterable<PlacedRow>;
  /**
   * Returns which physical rows of a fragment remain, except for further ones of duplicated ids: 1 at the offset of
   * each.
   */
  remainingIn(fragment: number, physicalRows: number): Uint8Array;
  readonly size: number;
  /** Memory of the texts of the rows, in bytes. */
  readonly bytes: number;
  /** Size of the properties of all objects as the manifest has them, in bytes. */
  readonly propertiesBytes: number;
  /**
   * Whether {@link CatalogState.merge} is possible: every row's address is known, and no foreign writer has duplicated
   * an id. Otherwise the whole manifest must be read.
   */
  readonly isMergeable: boolean;
  /** Number of ids that foreign writers have duplicated. */
  readonly duplicates: number;
  /** Number of bytes that the state has taken for itself; a state that began as another one shares that one's memory. */
  readonly ownBytes: number;
  /** Prepares {@link CatalogState.share}, so that it takes little time; the state may change meanwhile. */
  prepareToShare(): Steps<void>;
  /** Returns the content, in memory that is not changed from now on: the state copies what it changes. */
  share(): SharedState;
}

/** The content of a state, for states in other threads. */
export interface SharedState {
  readonly rows: SharedRows;
  readonly facts: VersionFacts;
}

/** Builds a state in steps, from batches in the order of the table; of two rows with equal ids the first counts. */
export interface StateBuilder {
  add(batch: RowBatch): Steps<void>;
  finish(): Steps<CatalogState>;
}

/** Indexes rows. */
export function createState(rows: Iterable<Row>, memory?: Memory): CatalogState {
  const builder = createStateBuilder(0, memory);
  atOnce(builder.add(toBatch([...rows])));
  return atOnce(builder.finish());
}

/** Creates a state that begins as another one. */
export function openState({ rows: content, facts }: SharedState): CatalogState {
  const memory = createMemory();
  return Object.assign(stateOf(createIndexedRows({ memory, content }), memory), { facts });
}

/**
 * Starts a state. A row takes about 100 bytes besides its texts, and becomes an object only when a caller requests it.
 *
 * @param expected number of rows that are likely to come
 * @param memory Default: memory that only this thread reads.
 */
export function createStateBuilder(expected = 0, memory = createMemory()): StateBuilder {
  const rows = createIndexedRows({ expected, memory });
  return {
    *add(batch) {
      for (let i = 0; i < batch.length; i++) {
        rows.addNew(batch, i);
        if (i % ITEMS_PER_STEP === 0) yield;
      }
    },
    *finish() {
      yield* rows.sort();
      return stateOf(rows, memory);
    },
  };
}

const NO_PROPERTIES: Readonly<Record<string, string>> = Object.freeze({});

function stateOf(rows: IndexedRows, memory: Memory): CatalogState {
  const { store } = rows;
  let revision = 0;
  const state: CatalogState = {
    get revision() {
      return revision;
    },
    facts: NO_FACTS,
    get verdicts() {
      return state.facts.verdicts;
    },
    verdictOf: (changeId) => state.verdicts.get(changeId),
    get(objectId) {
      const row = rows.find(objectId);
      if (row < 0) return undefined;
      const metadata = store.metadata(row) ?? "";
      return {
        objectId,
        objectType: store.type(row),
        location: store.location(row),
        properties: metadata === "" ? NO_PROPERTIES : parseProperties(metadata),
      };
    },
    descendants: (objectId) => descendantsOf(rows, objectId),
    hasChildren(objectId) {
      const place = rows.place(objectId, "", -1);
      const row = rows.first((key) => compareKeys(key, place) < 0);
      return row !== undefined && isChild(rows.key(row), place);
    },
    ownerOf(location) {
      const row = rows.findLocation(location);
      return row < 0 ? undefined : store.id(row);
    },
    *locationsInside(directory) {
      for (const row of rows.inside(directory)) yield store.location(row) as string;
    },
    children(objectId, kind, after, limit) {
      const names: string[] = [];
      const place = rows.place(objectId, after, store.kindOf(kind));
      for (const row of rows.from((key) => compareKeys(key, place) <= 0)) {
        if (names.length >= limit) break;
        const key = rows.key(row);
        if (key.kind !== place.kind || !isChild(key, place)) break;
        const name = store.name(row);
        // Two ids may have equal names in the root: `x` and `$x`.
        if (name !== names.at(-1)) names.push(name);
      }
      return names;
    },
    addressesOf(objectId) {
      const row = rows.find(objectId);
      if (row < 0 || store.fragment(row) === NO_FRAGMENT) return undefined;
      return [{ fragment: store.fragment(row), offset: store.offset(row) }, ...rows.furtherPlaces(objectId)];
    },
    apply(changes, addresses) {
      revision++;
      const put: Row[] = [];
      for (const [objectId, row] of changes) {
        rows.remove(objectId);
        if (row !== undefined) put.push(row);
      }
      const batch = toBatch(put, addresses && toAddressColumn(put, addresses));
      for (let i = 0; i < batch.length; i++) rows.addNew(batch, i);
      for (const [objectId, address] of addresses ?? []) {
        const row = changes.has(objectId) ? -1 : rows.find(objectId);
        if (row >= 0) store.setAddress(row, address);
      }
    },
    merge(delta) {
      revision++;
      rows.merge(delta);
    },
    remainingIn(fragment, physicalRows) {
      const remaining = new Uint8Array(physicalRows);
      for (const row of store.rowsIn(new Set([fragment]))) remaining[store.offset(row)] = 1;
      return remaining;
    },
    *rowsIn(fragments) {
      for (const row of store.rowsIn(fragments)) {
        yield {
          fragment: store.fragment(row),
          offset: store.offset(row),
          objectId: store.id(row),
          objectType: store.type(row),
          location: store.location(row),
          metadata: store.metadata(row),
        };
      }
    },
    get bytes() {
      return store.bytes;
    },
    get propertiesBytes() {
      return store.metadataBytes;
    },
    get size() {
      return store.size;
    },
    get isMergeable() {
      return rows.isMergeable;
    },
    get duplicates() {
      return rows.duplicates;
    },
    get ownBytes() {
      return memory.taken;
    },
    prepareToShare: rows.prepareToShare,
    share: () => ({ rows: rows.share(), facts: state.facts }),
  };
  return state;
}

function toAddressColumn(rows: readonly Row[], addresses: ReadonlyMap<string, RowAddress>): Uint32Array {
  const column = new Uint32Array(rows.length * 2);
  for (const [i, { objectId }] of rows.entries()) {
    const { fragment, offset } = addresses.get(objectId) ?? { fragment: NO_FRAGMENT, offset: 0 };
    column[i * 2] = offset;
    column[i * 2 + 1] = fragment;
  }
  return column;
}

/** Returns the ids of all rows below a namespace; `""` is the root. */
function descendantsOf(rows: IndexedRows, objectId: string): IterableIterator<string> {
  return objectId === "" ? everything(rows) : below(rows, objectId);
}

function* everything({ store }: IndexedRows): IterableIterator<string> {
  for (const row of store.rows()) {
    const id = store.id(row);
    if (id !== "") yield id;
  }
}

/** Yields the ids below a namespace: its children, and rows whose parent's id begins with its own id and a `$`. */
function* below(rows: IndexedRows, objectId: string): IterableIterator<string> {
  const own = Buffer.from(objectId);
  yield* withParent(rows, own, (key) => parentEnd(key) - key.start === own.byteLength);
  yield* withParent(rows, Buffer.from(`${objectId}$`), () => true);
}

/** Yields the ids of the rows from a parent on, as long as their parents begin with its id and meet a condition. */
function* withParent(
  rows: IndexedRows,
  prefix: Buffer,
  isMeant: (key: RowKey) => boolean,
): IterableIterator<string> {
  const length = prefix.byteLength;
  // An empty name after the prefix: the place before all of its children.
  const place = {
    bytes: Buffer.concat([prefix, Buffer.from("$")]),
    start: 0,
    end: length + 1,
    nameStart: length + 1,
    kind: -1,
  };
  for (const row of rows.from((key) => compareKeys(key, place) < 0)) {
    const key = rows.key(row);
    if (parentEnd(key) - key.start < length || !isMeant(key)) return;
    if (compareBytes(key.bytes, key.start, key.start + length, prefix, 0, length) !== 0) return;
    yield rows.store.id(row);
  }
}
