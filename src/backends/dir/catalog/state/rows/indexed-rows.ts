import { ITEMS_PER_STEP, type Steps } from "../../../../../runtime/pace.ts";
import type { Memory } from "../memory.ts";
import { createByteHash, createHashIndex, type HashTable, newSeed } from "./hash-index.ts";
import {
  createOrderedRows,
  inBlocks,
  type OrderedRows,
  radixSort,
  type SharedOrder,
} from "./ordered-rows.ts";
import { compareKeys, createKey, type RowKey } from "./row-key.ts";
import { createRowStore, type RowStore, type SharedStore } from "./row-store.ts";
import type { RowAddress } from "./stored-row.ts";
import { type Delta, NO_FRAGMENT, type RowBatch } from "./stored-row.ts";

/** Rows indexed by id, by location and, once they are sorted, by their order. */
export interface IndexedRows {
  readonly store: RowStore;
  /** Adds a row; if its id exists, records a further place of that row. */
  addNew(batch: RowBatch, index: number): void;
  /** Removes the row with an id, if it exists. */
  remove(objectId: string): void;
  merge(delta: Delta): void;
  /** Sorts the rows, which remain in order from then on; nothing may change meanwhile. */
  sort(): Steps<void>;
  /** Returns the number of the row with an id; -1 if there is none. */
  find(objectId: string): number;
  findLocation(location: string): number;
  /** Iterates over the rows whose location is inside a directory, in the order of the locations. */
  inside(directory: string): IterableIterator<number>;
  /** Returns the further places of rows with an id. */
  furtherPlaces(objectId: string): readonly RowAddress[];
  readonly isMergeable: boolean;
  /** Number of ids with further places. */
  readonly duplicates: number;
  /** Returns a row's place in the order, valid until the next call. */
  key(row: number): RowKey;
  /** Returns the place of texts in the order, valid until the next call. */
  place(parent: string, name: string, kind: number): RowKey;
  /** Iterates over the rows from the first one on whose key `isBefore` rejects. */
  from(isBefore: (key: RowKey) => boolean): IterableIterator<number>;
  /** Returns the first of the rows of {@link IndexedRows.from}. */
  first(isBefore: (key: RowKey) => boolean): number | undefined;
  /** Prepares {@link IndexedRows.share}; the rows may change meanwhile. */
  prepareToShare(): Steps<void>;
  /** Returns sorted rows as memory that is not changed from now on. */
  share(): SharedRows;
}

/** Sorted rows, for collections in other threads. */
export interface SharedRows {
  readonly seed: number;
  readonly store: SharedStore;
  readonly byId: readonly HashTable[];
  readonly byLocation: readonly HashTable[];
  readonly nested: SharedOrder;
  readonly order: SharedOrder;
  readonly doubled: ReadonlyMap<string, readonly RowAddress[]>;
  readonly unplaced: number;
}

/** Options of {@link createIndexedRows}. */
export interface IndexedRowsOptions {
  /** Number of rows for which it has room from the start. Default: 0. */
  readonly expected?: number;
  readonly memory: Memory;
  /** The first rows. Default: none. */
  readonly content?: SharedRows;
}

const NO_ROWS: SharedOrder = inBlocks(new Int32Array());

/** Creates a collection. */
export function createIndexedRows({ expected = 0, memory, content }: IndexedRowsOptions): IndexedRows {
  const seed = content?.seed ?? newSeed();
  const hash = createByteHash(seed);
  const store = createRowStore(hash, memory, content?.store);
  const byId = createHashIndex(expected, memory, content?.byId);
  const byLocation = createHashIndex(expected, memory, content?.byLocation);
  const compareLocations = (a: number, b: number) => store.compareLocations(a, b) || a - b;
  /** The rows whose location is not directly in the base, in the order of their locations. */
  const nested = createOrderedRows(content?.nested ?? NO_ROWS, compareLocations, memory);
  const doubled = new Map([...(content?.doubled ?? [])].map(([id, places]) => [id, [...places]]));
  const search = createSearchText();
  const [keyA, keyB] = [createKey(), createKey()];
  let unplaced = content?.unplaced ?? 0;

  const key = (row: number) => store.key(row, keyA);
  // Two ids may have equal parents and names: `x` and `$x`.
  const compareRows = (a: number, b: number) =>
    compareKeys(store.key(a, keyA), store.key(b, keyB)) || keyA.end - keyA.start - (keyB.end - keyB.start);

  let order: OrderedRows | undefined = content && createOrderedRows(content.order, compareRows, memory);

  // The indices may offer rows that were removed.
  function findBytes(bytes: Uint8Array, start: number, end: number): number {
    return byId.find(
      hash(bytes, start, end),
      (row) => !store.isFree(row) && store.isId(row, bytes, start, end),
    );
  }
  function findIn({ objectId: { bytes, offsets } }: RowBatch, index: number): number {
    return findBytes(bytes, offsets[index] as number, offsets[index + 1] as number);
  }
  function find(objectId: string): number {
    const { bytes, end } = search.encode(objectId);
    return end < 0 ? -1 : findBytes(bytes, 0, end);
  }
  function add(batch: RowBatch, index: number): void {
    const row = store.add(batch, index);
    byId.add(store.idHash(row), row);
    const locationHash = store.locationHash(row);
    if (locationHash !== undefined) byLocation.add(locationHash, row);
    if (store.isNested(row)) nested.add(row);
    if (store.fragment(row) === NO_FRAGMENT) unplaced++;
    order?.add(row);
  }
  function remove(row: number): void {
    order?.remove(row);
    byId.remove(store.idHash(row), row);
    const locationHash = store.locationHash(row);
    if (locationHash !== undefined) byLocation.remove(locationHash, row);
    if (store.isNested(row)) nested.remove(row);
    if (store.fragment(row) === NO_FRAGMENT) unplaced--;
    store.delete(row);
  }
  function addDouble({ addresses }: RowBatch, index: number, first: number): void {
    const id = store.id(first);
    const places = doubled.get(id) ?? [];
    if (addresses !== undefined) places.push(addressIn(addresses, index));
    doubled.set(id, places);
  }
  /** Marks the rows that have lost their places. */
  function markLost({ lostFragments, remaining }: Delta): Uint8Array {
    const lost = new Uint8Array(store.end);
    if (lostFragments.size === 0 && remaining.size === 0) return lost;
    for (const row of store.rowsIn(new Set([...lostFragments, ...remaining.keys()]))) {
      if (remaining.get(store.fragment(row))?.[store.offset(row)] !== 1) lost[row] = 1;
    }
    return lost;
  }
  /** Merges a row of a delta: a lost one that appears again, or a new one. */
  function mergeRow(batch: RowBatch, index: number, lost: Uint8Array): void {
    const row = findIn(batch, index);
    if (row < 0) {
      add(batch, index);
      return;
    }
    if (lost[row] !== 1) {
      addDouble(batch, index, row);
      return;
    }
    lost[row] = 0;
    if (batch.addresses !== undefined && store.isSame(row, batch, index)) {
      store.setAddress(row, addressIn(batch.addresses, index));
      return;
    }
    remove(row);
    add(batch, index);
  }
  return {
    store,
    addNew(batch, index) {
      const first = findIn(batch, index);
      if (first < 0) add(batch, index);
      else addDouble(batch, index, first);
    },
    remove(objectId) {
      doubled.delete(objectId);
      const row = find(objectId);
      if (row >= 0) remove(row);
    },
    merge(delta) {
      const lost = markLost(delta);
      for (const batch of delta.added) for (let i = 0; i < batch.length; i++) mergeRow(batch, i, lost);
      for (let row = 0; row < lost.length; row++) if (lost[row] === 1) remove(row);
    },
    *sort() {
      const rows = new Int32Array(memory.take(store.size * Int32Array.BYTES_PER_ELEMENT));
      let count = 0;
      for (const row of store.rows()) {
        rows[count++] = row;
        if (count % ITEMS_PER_STEP === 0) yield;
      }
      yield* radixSort(rows, { radix: store.radix, digit: store.digit, compare: compareRows });
      order = createOrderedRows(inBlocks(rows), compareRows, memory);
    },
    find,
    findLocation(location) {
      const { bytes, end } = search.encode(location);
      if (end < 0) return -1;
      const isMeant = (row: number) => !store.isFree(row) && store.isLocation(row, bytes, 0, end);
      return byLocation.find(hash(bytes, 0, end), isMeant);
    },
    *inside(directory) {
      const start = Buffer.from(`${directory}/`);
      for (const row of nested.from((other) => store.isLocationBefore(other, start))) {
        if (!store.location(row)?.startsWith(`${directory}/`)) return;
        yield row;
      }
    },
    furtherPlaces: (objectId) => doubled.get(objectId) ?? [],
    get isMergeable() {
      return unplaced === 0 && doubled.size === 0;
    },
    get duplicates() {
      return doubled.size;
    },
    key,
    place: search.place,
    from: (isBefore) => order?.from((row) => isBefore(key(row))) ?? [].values(),
    first: (isBefore) => order?.first((row) => isBefore(key(row))),
    *prepareToShare() {
      yield* byId.prepareToShare((own, row) => !store.isFree(row) && store.idHash(row) === own);
      yield* byLocation.prepareToShare((own, row) => !store.isFree(row) && store.locationHash(row) === own);
    },
    share: () => ({
      seed,
      store: store.share(),
      byId: byId.share(),
      byLocation: byLocation.share(),
      nested: nested.share(),
      order: order?.share() ?? NO_ROWS,
      doubled,
      unplaced,
    }),
  };
}

function addressIn(addresses: Uint32Array, index: number): RowAddress {
  return { fragment: addresses[index * 2 + 1] as number, offset: addresses[index * 2] as number };
}

/** Encodes search texts as bytes, in memory that the next search reuses. */
interface SearchText {
  /** Returns the UTF-8 bytes of a text and their end, which is -1 for a malformed text with half a character. */
  encode(text: string): { readonly bytes: Uint8Array; readonly end: number };
  /** Returns the place in the order of a name below a parent; kind -1 is before all kinds. */
  place(parent: string, name: string, kind: number): RowKey;
}

/** Creates an encoder for searches. */
function createSearchText(): SearchText {
  const encoded = { bytes: Buffer.alloc(512), end: 0 };
  const placed = createKey();
  return {
    encode(text) {
      if (text.length * 3 > encoded.bytes.byteLength) encoded.bytes = Buffer.alloc(text.length * 6);
      encoded.end = encodeInto(text, encoded.bytes);
      return encoded;
    },
    place(parent, name, kind) {
      placed.bytes = Buffer.from(parent === "" ? name : `${parent}$${name}`);
      placed.end = placed.bytes.byteLength;
      placed.nameStart = placed.end - Buffer.byteLength(name);
      placed.kind = kind;
      return placed;
    },
  };
}

function encodeInto(text: string, bytes: Buffer): number {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x80) return text.isWellFormed() ? bytes.write(text) : -1;
    bytes[i] = unit;
  }
  return text.length;
}
