import { copyBytes, createArena } from "./arena.ts";
import type { ByteHash } from "./hash-index.ts";
import { NO_FRAGMENT, type RowBatch, type TextColumn } from "./row-batch.ts";
import { compareBytes, type RowKey } from "./row-key.ts";
import type { RowAddress } from "./stored-row.ts";

/** Rows by number, as bytes: id, location and metadata text in sequence, and their positions. */
export interface RowStore {
  /** Adds a row of a batch and returns its number; the numbers of deleted rows are reused. */
  add(batch: RowBatch, index: number): number;
  delete(row: number): void;
  /** Iterates over the numbers of all rows. */
  rows(): IterableIterator<number>;
  /** Returns the numbers of the rows in some fragments. */
  rowsIn(fragments: ReadonlySet<number>): number[];
  /** Largest number of a row so far, plus one. */
  readonly end: number;
  readonly size: number;
  /** Memory of the texts of the rows, in bytes. */
  readonly bytes: number;
  id(row: number): string;
  name(row: number): string;
  location(row: number): string | undefined;
  metadata(row: number): string | undefined;
  type(row: number): string;
  /** Returns the number of a type, which orders the kinds of children; -1 if no row has had the type. */
  kindOf(type: string): number;
  /** Returns the place of a row in the order, valid until the next call with this `into`. */
  key(row: number, into: MutableKey): RowKey;
  /** Returns a digit of the place of a row in the order, below `radix`; -1 past the last one. */
  digit(row: number, depth: number): number;
  readonly radix: number;
  idHash(row: number): number;
  /** Returns the hash of a row's location; undefined if it has none. */
  locationHash(row: number): number | undefined;
  isId(row: number, bytes: Uint8Array, start: number, end: number): boolean;
  isLocation(row: number, bytes: Uint8Array, start: number, end: number): boolean;
  /** Whether a row of a batch has equal content, regardless of its place. */
  isSame(row: number, batch: RowBatch, index: number): boolean;
  fragment(row: number): number;
  offset(row: number): number;
  setAddress(row: number, address: RowAddress): void;
  /** Whether the location contains a `/`. */
  isNested(row: number): boolean;
  /** Compares the locations of two rows by their bytes. */
  compareLocations(a: number, b: number): number;
  /** Whether the location of a row is before a text in the order of bytes. */
  isLocationBefore(row: number, text: Uint8Array): boolean;
}

/** A place in the order that is overwritten repeatedly. */
export type MutableKey = { -readonly [K in keyof RowKey]: RowKey[K] };

/** Creates a key for {@link RowStore.key}. */
export function createKey(): MutableKey {
  return { bytes: new Uint8Array(), start: 0, end: 0, nameStart: 0, kind: 0 };
}

/** Length of a text that is null. */
const NULL = 0xffff_ffff;
/** Kind of a number without a row. */
const FREE = 0xffff_ffff;
const DOLLAR = 0x24;
const SLASH = 0x2f;

/** Number of unused bytes above which their memory is reclaimed. */
const MIN_DEAD_BYTES = 4 * 1024 * 1024;

/**
 * Creates a store; `hash` is applied to ids and locations.
 *
 * @param expected number of rows for which it has room from the start
 */
export function createRowStore(hash: ByteHash, expected = 0): RowStore {
  let arena = createArena();
  let liveBytes = 0;
  let columns = createColumns(Math.max(64, expected + (expected >> 3)));
  let end = 0;
  let size = 0;
  const free: number[] = [];
  const kinds = ["namespace", "table"].map((type) => ({ type, bytes: Buffer.from(type) }));

  function kindAt({ bytes, offsets }: TextColumn, index: number): number {
    const [start, stop] = [offsets[index] as number, offsets[index + 1] as number];
    const known = kinds.findIndex(
      (kind) => compareBytes(kind.bytes, 0, kind.bytes.byteLength, bytes, start, stop) === 0,
    );
    if (known >= 0) return known;
    const own = Buffer.from(bytes.subarray(start, stop));
    return kinds.push({ type: own.toString(), bytes: own }) - 1;
  }
  function take(): number {
    const row = free.pop();
    if (row !== undefined) return row;
    if (end === columns.kind.length) columns = grown(columns);
    return end++;
  }
  function chunkOf(row: number): Buffer {
    return arena.chunks[columns.chunk[row] as number] as Buffer;
  }
  const idStart = (row: number) => columns.at[row] as number;
  const locationStart = (row: number) => idStart(row) + (columns.idLength[row] as number);
  const metadataStart = (row: number) => locationStart(row) + lengthOf(columns.locationLength[row] as number);
  const recordLength = (row: number) =>
    metadataStart(row) + lengthOf(columns.metadataLength[row] as number) - idStart(row);

  /** Copies used bytes to new memory if most of the old memory is unused; costs no more than the deletions before. */
  function takeBack(): void {
    const dead = arena.bytes - liveBytes;
    if (dead < MIN_DEAD_BYTES || dead < liveBytes) return;
    const old = arena;
    arena = createArena();
    for (let row = 0; row < end; row++) {
      if (columns.kind[row] === FREE) continue;
      const [start, length] = [idStart(row), recordLength(row)];
      arena.reserve(length);
      const source = old.chunks[columns.chunk[row] as number] as Buffer;
      copyBytes(source, start, start + length, arena.chunks[arena.chunk] as Buffer, arena.at);
      columns.chunk[row] = arena.chunk;
      columns.at[row] = arena.at;
    }
  }
  function text(row: number, start: number, length: number): string {
    return chunkOf(row).toString("utf8", start, start + length);
  }
  function isText(row: number, at: number, length: number, column: TextColumn, index: number): boolean {
    if (column.isNull(index)) return length === NULL;
    const [start, stop] = [column.offsets[index] as number, column.offsets[index + 1] as number];
    if (length !== stop - start) return false;
    return compareBytes(chunkOf(row), at, at + length, column.bytes, start, stop) === 0;
  }
  return {
    add(batch, index) {
      const row = take();
      const { objectId: id, location, metadata, addresses } = batch;
      const [start, stop] = [id.offsets[index] as number, id.offsets[index + 1] as number];
      let nameStart = stop;
      while (nameStart > start && id.bytes[nameStart - 1] !== DOLLAR) nameStart--;
      columns.kind[row] = kindAt(batch.objectType, index);
      columns.idLength[row] = stop - start;
      columns.nameStart[row] = nameStart - start;
      columns.locationLength[row] = lengthAt(location, index);
      columns.metadataLength[row] = lengthAt(metadata, index);
      columns.fragment[row] = addresses === undefined ? NO_FRAGMENT : (addresses[index * 2 + 1] as number);
      columns.offset[row] = addresses?.[index * 2] ?? 0;
      columns.at[row] = 0;
      const length = recordLength(row);
      arena.reserve(length);
      columns.chunk[row] = arena.chunk;
      columns.at[row] = arena.at;
      liveBytes += length;
      size++;
      const chunk = chunkOf(row);
      copyBytes(id.bytes, start, stop, chunk, arena.at);
      copyText(location, index, chunk, locationStart(row));
      copyText(metadata, index, chunk, metadataStart(row));
      return row;
    },
    delete(row) {
      liveBytes -= recordLength(row);
      size--;
      columns.kind[row] = FREE;
      free.push(row);
      takeBack();
    },
    *rows() {
      for (let row = 0; row < end; row++) if (columns.kind[row] !== FREE) yield row;
    },
    rowsIn(fragments) {
      const found: number[] = [];
      const [only] = fragments;
      const isMeant =
        fragments.size === 1
          ? (fragment: number) => fragment === only
          : (fragment: number) => fragments.has(fragment);
      const { fragment, kind } = columns;
      for (let row = 0; row < end; row++) {
        if (isMeant(fragment[row] as number) && kind[row] !== FREE) found.push(row);
      }
      return found;
    },
    get bytes() {
      return arena.bytes;
    },
    get size() {
      return size;
    },
    get end() {
      return end;
    },
    id: (row) => text(row, idStart(row), columns.idLength[row] as number),
    name(row) {
      const nameStart = columns.nameStart[row] as number;
      return text(row, idStart(row) + nameStart, (columns.idLength[row] as number) - nameStart);
    },
    location(row) {
      const length = columns.locationLength[row] as number;
      return length === NULL ? undefined : text(row, locationStart(row), length);
    },
    metadata(row) {
      const length = columns.metadataLength[row] as number;
      return length === NULL ? undefined : text(row, metadataStart(row), length);
    },
    type: (row) => kinds[columns.kind[row] as number]?.type ?? "",
    kindOf: (type) => kinds.findIndex((kind) => kind.type === type),
    key(row, into) {
      into.bytes = chunkOf(row);
      into.start = idStart(row);
      into.end = into.start + (columns.idLength[row] as number);
      into.nameStart = into.start + (columns.nameStart[row] as number);
      into.kind = columns.kind[row] as number;
      return into;
    },
    digit(row, depth) {
      const nameStart = columns.nameStart[row] as number;
      const parentLength = Math.max(0, nameStart - 1);
      // The parent's bytes, a terminator that sorts before all of them, the kind, and the bytes of the name.
      if (depth < parentLength) return 1 + (chunkOf(row)[idStart(row) + depth] as number);
      if (depth === parentLength) return 0;
      if (depth === parentLength + 1) return columns.kind[row] as number;
      const at = nameStart + depth - parentLength - 2;
      return at < (columns.idLength[row] as number) ? (chunkOf(row)[idStart(row) + at] as number) : -1;
    },
    get radix() {
      return Math.max(257, kinds.length);
    },
    idHash: (row) => hash(chunkOf(row), idStart(row), locationStart(row)),
    locationHash(row) {
      if (columns.locationLength[row] === NULL) return undefined;
      return hash(chunkOf(row), locationStart(row), metadataStart(row));
    },
    isId: (row, bytes, start, stop) =>
      compareBytes(chunkOf(row), idStart(row), locationStart(row), bytes, start, stop) === 0,
    isLocation: (row, bytes, start, stop) =>
      columns.locationLength[row] !== NULL &&
      compareBytes(chunkOf(row), locationStart(row), metadataStart(row), bytes, start, stop) === 0,
    isSame: (row, batch, index) =>
      columns.kind[row] === kindAt(batch.objectType, index) &&
      isText(row, idStart(row), columns.idLength[row] as number, batch.objectId, index) &&
      isText(row, locationStart(row), columns.locationLength[row] as number, batch.location, index) &&
      isText(row, metadataStart(row), columns.metadataLength[row] as number, batch.metadata, index),
    fragment: (row) => columns.fragment[row] as number,
    offset: (row) => columns.offset[row] as number,
    setAddress(row, { fragment, offset }) {
      columns.fragment[row] = fragment;
      columns.offset[row] = offset;
    },
    compareLocations: (a, b) =>
      compareBytes(
        chunkOf(a),
        locationStart(a),
        metadataStart(a),
        chunkOf(b),
        locationStart(b),
        metadataStart(b),
      ),
    isLocationBefore: (row, text) =>
      compareBytes(chunkOf(row), locationStart(row), metadataStart(row), text, 0, text.byteLength) < 0,
    isNested(row) {
      const chunk = chunkOf(row);
      const stop = metadataStart(row);
      for (let i = locationStart(row); i < stop; i++) if (chunk[i] === SLASH) return true;
      return false;
    },
  };
}

/** Creates the columns of each row besides its texts: their positions and lengths, in bytes. */
function createColumns(capacity: number) {
  return {
    chunk: new Uint32Array(capacity),
    at: new Uint32Array(capacity),
    idLength: new Uint32Array(capacity),
    nameStart: new Uint32Array(capacity),
    locationLength: new Uint32Array(capacity),
    metadataLength: new Uint32Array(capacity),
    fragment: new Uint32Array(capacity),
    offset: new Uint32Array(capacity),
    kind: new Uint32Array(capacity),
  };
}

function grown(old: ReturnType<typeof createColumns>): ReturnType<typeof createColumns> {
  const columns = createColumns(old.kind.length * 2);
  for (const name of Object.keys(columns) as (keyof typeof columns)[]) columns[name].set(old[name]);
  return columns;
}

function lengthOf(length: number): number {
  return length === NULL ? 0 : length;
}

function lengthAt(column: TextColumn, index: number): number {
  if (column.isNull(index)) return NULL;
  return (column.offsets[index + 1] as number) - (column.offsets[index] as number);
}

function copyText({ bytes, offsets }: TextColumn, index: number, target: Uint8Array, at: number): void {
  copyBytes(bytes, offsets[index] as number, offsets[index + 1] as number, target, at);
}
