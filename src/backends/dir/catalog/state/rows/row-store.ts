import type { Memory } from "../memory.ts";
import { copyBytes, createArena, type SealedPieces, type SharedArena } from "../memory.ts";
import { type ColumnPage, createColumnPages, PAGE_MASK, PAGE_ROWS, PAGE_SHIFT } from "./column-pages.ts";
import type { ByteHash } from "./hash-index.ts";
import { compareBytes, type MutableKey, type RowKey } from "./row-key.ts";
import type { RowAddress } from "./stored-row.ts";
import { NO_FRAGMENT, type RowBatch, type TextColumn } from "./stored-row.ts";

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
  /** Size of the metadata texts of the rows, in bytes. */
  readonly metadataBytes: number;
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
  isFree(row: number): boolean;
  /** Returns the rows as memory that is not changed from now on. */
  share(): SharedStore;
}

/** The rows of a store, for stores in other threads. */
export interface SharedStore {
  readonly texts: SharedArena;
  readonly liveBytes: number;
  readonly metadataBytes: number;
  readonly pages: readonly ArrayBufferLike[];
  readonly end: number;
  readonly size: number;
  /** The types by number. */
  readonly types: readonly string[];
}

/** Length of a text that is null. */
const NULL = 0xffff_ffff;
/** Kind of a number without a row. */
const FREE = 0xffff_ffff;
const DOLLAR = 0x24;
const SLASH = 0x2f;

/** Number of unused bytes above which their memory is reclaimed. */
const MIN_DEAD_BYTES = 4 * 1024 * 1024;

/** Rows whose texts move at each change while memory is reclaimed. */
const MOVED_PER_CHANGE = 8;

/**
 * Creates a store; `hash` is applied to ids and locations.
 *
 * @param content rows of another store. Default: none.
 */
export function createRowStore(hash: ByteHash, memory: Memory, content?: SharedStore): RowStore {
  const arena = createArena(memory, content?.texts);
  /** Memory that is being taken back, and the first row whose texts may still be in it. */
  let leaving: SealedPieces | undefined;
  let unmoved = 0;
  let liveBytes = content?.liveBytes ?? 0;
  let metadataBytes = content?.metadataBytes ?? 0;
  const { pages, writable, share } = createColumnPages(memory, content?.pages);
  let end = content?.end ?? 0;
  let size = content?.size ?? 0;
  const types = content?.types ?? ["namespace", "table"];
  const kinds = types.map((type) => ({ type, bytes: Buffer.from(type) }));

  const pageOf = (row: number) => pages[row >>> PAGE_SHIFT] as ColumnPage;
  const isFree = (row: number) => pageOf(row).kind[row & PAGE_MASK] === FREE;
  const free = content === undefined ? [] : freeRows(content);

  function freeRows({ end: rows, size: used }: SharedStore): number[] {
    const found: number[] = [];
    for (let row = 0; row < rows && found.length < rows - used; row++) if (isFree(row)) found.push(row);
    return found;
  }
  function kindAt({ bytes, offsets }: TextColumn, index: number): number {
    const [start, stop] = [offsets[index] as number, offsets[index + 1] as number];
    const known = kinds.findIndex(
      (kind) => compareBytes(kind.bytes, 0, kind.bytes.byteLength, bytes, start, stop) === 0,
    );
    if (known >= 0) return known;
    const own = Buffer.from(bytes.subarray(start, stop));
    return kinds.push({ type: own.toString(), bytes: own }) - 1;
  }
  const chunkNumber = (row: number) => pageOf(row).chunk[row & PAGE_MASK] as number;
  function chunkOf(row: number): Buffer {
    return arena.chunks[chunkNumber(row)] as Buffer;
  }
  const idStart = (row: number) => pageOf(row).at[row & PAGE_MASK] as number;
  const idLength = (row: number) => pageOf(row).idLength[row & PAGE_MASK] as number;
  const locationLength = (row: number) => pageOf(row).locationLength[row & PAGE_MASK] as number;
  const metadataLength = (row: number) => pageOf(row).metadataLength[row & PAGE_MASK] as number;
  const kindOf = (row: number) => pageOf(row).kind[row & PAGE_MASK] as number;
  const nameStartOf = (row: number) => pageOf(row).nameStart[row & PAGE_MASK] as number;
  const locationStart = (row: number) => idStart(row) + idLength(row);
  const metadataStart = (row: number) => locationStart(row) + lengthOf(locationLength(row));
  const recordLength = (row: number) => metadataStart(row) + lengthOf(metadataLength(row)) - idStart(row);

  /**
   * Copies used bytes to new memory if most of the old memory is unused. Each change copies a few rows, because all at once take long.
   */
  function takeBack(): void {
    const dead = arena.bytes - liveBytes;
    // A store that shares the texts of another one would only copy what that one takes back.
    if (leaving === undefined && dead >= MIN_DEAD_BYTES && dead >= liveBytes && !arena.isForeign)
      [leaving, unmoved] = [arena.seal(), 0];
    if (leaving === undefined) return;
    for (const stop = Math.min(unmoved + MOVED_PER_CHANGE, end); unmoved < stop; unmoved++) {
      if (!isFree(unmoved) && leaving.includes(chunkNumber(unmoved))) moveTexts(unmoved);
    }
    if (unmoved < end) return;
    leaving.free();
    leaving = undefined;
  }
  function moveTexts(row: number): void {
    const [source, start, length] = [chunkOf(row), idStart(row), recordLength(row)];
    arena.reserve(length);
    copyBytes(source, start, start + length, arena.chunks[arena.chunk] as Buffer, arena.at);
    const { chunk, at } = writable(row);
    chunk[row & PAGE_MASK] = arena.chunk;
    at[row & PAGE_MASK] = arena.at;
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
      const row = free.pop() ?? end++;
      const [page, i] = [writable(row), row & PAGE_MASK];
      const { objectId: id, location, metadata, addresses } = batch;
      const [start, stop] = [id.offsets[index] as number, id.offsets[index + 1] as number];
      let nameStart = stop;
      while (nameStart > start && id.bytes[nameStart - 1] !== DOLLAR) nameStart--;
      page.kind[i] = kindAt(batch.objectType, index);
      page.idLength[i] = stop - start;
      page.nameStart[i] = nameStart - start;
      page.locationLength[i] = lengthAt(location, index);
      page.metadataLength[i] = lengthAt(metadata, index);
      page.fragment[i] = addresses === undefined ? NO_FRAGMENT : (addresses[index * 2 + 1] as number);
      page.offset[i] = addresses?.[index * 2] ?? 0;
      page.at[i] = 0;
      const length = recordLength(row);
      arena.reserve(length);
      page.chunk[i] = arena.chunk;
      page.at[i] = arena.at;
      liveBytes += length;
      metadataBytes += lengthOf(metadataLength(row));
      size++;
      const chunk = chunkOf(row);
      copyBytes(id.bytes, start, stop, chunk, arena.at);
      copyText(location, index, chunk, locationStart(row));
      copyText(metadata, index, chunk, metadataStart(row));
      takeBack();
      return row;
    },
    delete(row) {
      liveBytes -= recordLength(row);
      metadataBytes -= lengthOf(metadataLength(row));
      size--;
      writable(row).kind[row & PAGE_MASK] = FREE;
      free.push(row);
      takeBack();
    },
    *rows() {
      for (let row = 0; row < end; row++) if (!isFree(row)) yield row;
    },
    rowsIn(fragments) {
      const found: number[] = [];
      const [only] = fragments;
      const isMeant =
        fragments.size === 1
          ? (fragment: number) => fragment === only
          : (fragment: number) => fragments.has(fragment);
      for (let first = 0; first < end; first += PAGE_ROWS) {
        const { fragment, kind } = pageOf(first);
        const count = Math.min(PAGE_ROWS, end - first);
        for (let i = 0; i < count; i++) {
          if (isMeant(fragment[i] as number) && kind[i] !== FREE) found.push(first + i);
        }
      }
      return found;
    },
    get bytes() {
      return arena.bytes;
    },
    get metadataBytes() {
      return metadataBytes;
    },
    get size() {
      return size;
    },
    get end() {
      return end;
    },
    id: (row) => text(row, idStart(row), idLength(row)),
    name(row) {
      const nameStart = nameStartOf(row);
      return text(row, idStart(row) + nameStart, idLength(row) - nameStart);
    },
    location(row) {
      const length = locationLength(row);
      return length === NULL ? undefined : text(row, locationStart(row), length);
    },
    metadata(row) {
      const length = metadataLength(row);
      return length === NULL ? undefined : text(row, metadataStart(row), length);
    },
    type: (row) => kinds[kindOf(row)]?.type ?? "",
    kindOf: (type) => kinds.findIndex((kind) => kind.type === type),
    key(row, into) {
      into.bytes = chunkOf(row);
      into.start = idStart(row);
      into.end = into.start + idLength(row);
      into.nameStart = into.start + nameStartOf(row);
      into.kind = kindOf(row);
      return into;
    },
    digit(row, depth) {
      const nameStart = nameStartOf(row);
      const parentLength = Math.max(0, nameStart - 1);
      // The parent's bytes, a terminator that sorts before all of them, the kind, and the bytes of the name.
      if (depth < parentLength) return 1 + (chunkOf(row)[idStart(row) + depth] as number);
      if (depth === parentLength) return 0;
      if (depth === parentLength + 1) return kindOf(row);
      const at = nameStart + depth - parentLength - 2;
      return at < idLength(row) ? (chunkOf(row)[idStart(row) + at] as number) : -1;
    },
    get radix() {
      return Math.max(257, kinds.length);
    },
    idHash: (row) => hash(chunkOf(row), idStart(row), locationStart(row)),
    locationHash(row) {
      if (locationLength(row) === NULL) return undefined;
      return hash(chunkOf(row), locationStart(row), metadataStart(row));
    },
    isId: (row, bytes, start, stop) =>
      compareBytes(chunkOf(row), idStart(row), locationStart(row), bytes, start, stop) === 0,
    isLocation: (row, bytes, start, stop) =>
      locationLength(row) !== NULL &&
      compareBytes(chunkOf(row), locationStart(row), metadataStart(row), bytes, start, stop) === 0,
    isSame: (row, batch, index) =>
      kindOf(row) === kindAt(batch.objectType, index) &&
      isText(row, idStart(row), idLength(row), batch.objectId, index) &&
      isText(row, locationStart(row), locationLength(row), batch.location, index) &&
      isText(row, metadataStart(row), metadataLength(row), batch.metadata, index),
    fragment: (row) => pageOf(row).fragment[row & PAGE_MASK] as number,
    offset: (row) => pageOf(row).offset[row & PAGE_MASK] as number,
    setAddress(row, address) {
      const { fragment, offset } = writable(row);
      fragment[row & PAGE_MASK] = address.fragment;
      offset[row & PAGE_MASK] = address.offset;
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
    isFree,
    share: () => ({
      texts: { chunks: arena.chunks, bytes: arena.bytes },
      liveBytes,
      metadataBytes,
      pages: share(),
      end,
      size,
      types: kinds.map(({ type }) => type),
    }),
  };
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
