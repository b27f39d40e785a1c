import { type DictionaryTexts, hasSizes, sizesOf } from "./dictionary-texts.ts";
import { type FlatTable, readInt64, readLength, readTable, readUint8, readVector } from "./flatbuffer.ts";
import { checkLz4Frame } from "./lz4.ts";
import type { ArrowField, ArrowType } from "./schema.ts";
import { unpack } from "./unpack.ts";
import { bytesInViews, VIEW_BYTES } from "./views.ts";

/** Sizes of the arrays of a message, in bytes. */
export interface LayoutSize {
  /** Unpacked size of all buffers; values that take no bytes count as a bit each, and more in lists. */
  readonly unpackedBytes: number;
  /** Memory that the engine needs for them: as much, and more for short values in lists. */
  readonly neededBytes: number;
  /** Size of the texts to which the indices of dictionaries refer, which plain columns would store. */
  readonly textBytes: number;
  /** Whether the batch's metadata has changed, because booleans that are all null got the buffer that they lacked; it must be checked again. */
  readonly isCompleted: boolean;
}

/**
 * Memory of a value in lists in the engine beside its own bytes, which a short value does not have: to which list it belongs, and whether it is
 * null. 2.5 MB of booleans in lists take 200 MB.
 */
const LIST_VALUE_BYTES = 8;

/** Memory of a value in a list of fixed size. */
const FIXED_LIST_VALUE_BYTES = 1;

/**
 * Checks that the buffers of a record batch are large enough for the lengths that its arrays declare.
 *
 * The engine trusts these sizes. A wrong one, above all a wrong unpacked size of a compressed buffer, makes it
 * allocate so much that the process ends.
 *
 * apache-arrow for JavaScript writes booleans that are all null without a buffer of values, which the engine refuses. They get the buffer of their
 * validity, which is as large, by a change of the batch's metadata in place.
 *
 * @param batch the table of the record batch
 * @param body the message's body
 * @param texts the sizes of the texts in dictionaries
 * @throws RangeError, for sizes that do not fit together.
 */
export function checkLayout(
  fields: readonly ArrowField[],
  batch: FlatTable,
  body: Uint8Array,
  texts: DictionaryTexts,
): LayoutSize {
  const cursor = createCursor(batch, body, texts);
  const rows = Number(readInt64(batch, 0));
  for (const field of fields) checkField(field, rows, cursor, 0);
  return cursor.finish();
}

/**
 * Returns the sizes of the texts in a dictionary that has passed {@link checkLayout}; undefined for one of other values.
 *
 * @throws RangeError
 */
export function textsIn({ type }: ArrowField, batch: FlatTable, body: Uint8Array): number[] | undefined {
  if (!hasSizes(type.name)) return undefined;
  const cursor = createCursor(batch, body, undefined);
  const { length } = cursor.node();
  cursor.buffer();
  cursor.buffer();
  return sizesOf(type.name, cursor.contents, length);
}

interface Cursor {
  /** Returns the length and the number of nulls of the next array. */
  node(): { length: number; nulls: number };
  /** Returns the unpacked size of the next buffer, in bytes. */
  buffer(): number;
  /** Makes the next buffer the last one, if it has no bytes; it may then share those of the last one. */
  repeat(): void;
  /** Returns the unpacked contents of the last buffer. */
  contents(): Uint8Array;
  /** Returns the next count of variadic buffers, for view types. */
  variadic(): number;
  /** Unpacked size so far, in bytes. */
  readonly unpackedBytes: number;
  /** Counts values that take no bytes, and for which the engine needs a number of them. */
  free(values: number, neededBytes: number): void;
  /** Counts values that the engine stores in more bytes than their buffers have. */
  expand(bytes: number): void;
  /** Counts the texts to which the last buffer refers, if it is the indices of a dictionary. */
  refer(field: ArrowField, length: number): void;
  /** Counts memory beside the buffers, in bytes. */
  need(bytes: number): void;
  /** Checks that everything was used, and returns the sizes. */
  finish(): LayoutSize;
}

const STRUCT_BYTES = 16;
const COUNT_BYTES = 8;

/** Maximum size of the buffers of a batch that are unpacked to be read, in bytes: 4 million views, or 8 million indices of any width. */
const MAX_READ_BYTES = 64 * 1024 * 1024;

/** Number of LZ4_FRAME among the codecs; the engine unpacks ZSTD to no more than the declared size. */
const LZ4 = 0;

function createCursor(batch: FlatTable, body: Uint8Array, texts: DictionaryTexts | undefined): Cursor {
  const { view } = batch;
  const nodes = readVector(batch, 1, STRUCT_BYTES);
  const buffers = readVector(batch, 2, STRUCT_BYTES);
  const counts = readVector(batch, 4, COUNT_BYTES);
  const compression = readTable(batch, 3);
  const isLz4 = compression !== undefined && readUint8(compression, 0) === LZ4;
  const bytes = new DataView(body.buffer, body.byteOffset, body.byteLength);
  let last: { readonly start: number; readonly size: number; readonly unpacked: number } | undefined;
  let [node, buffer, count, total, packed, needed, read, textBytes, indices] = [0, 0, 0, 0, 0, 0, 0, 0, 0];
  let [sharedBytes, isCompleted] = [0, false];

  /** A compressed buffer begins with its unpacked size, or with -1 if it is stored uncompressed. */
  function unpackedSize(start: number, size: number): number {
    if (compression === undefined || size === 0) return size;
    if (size < 8) throw new RangeError("a compressed buffer is shorter than its header");
    // Each is read by itself, so a short body that all of them share would be read without an end.
    packed += size;
    if (packed > body.byteLength + sharedBytes) throw new RangeError("compressed buffers share their bytes");
    if (bytes.getBigInt64(start, true) === -1n) return size - 8;
    const unpacked = readLength(bytes, start);
    if (isLz4 && unpacked > 0) checkLz4Frame(body.subarray(start + 8, start + size), unpacked);
    return unpacked;
  }
  function contents(): Uint8Array {
    const { start, size, unpacked } = last ?? { start: 0, size: 0, unpacked: 0 };
    if (compression === undefined || size === 0) return body.subarray(start, start + size);
    const packed = body.subarray(start + 8, start + size);
    if (bytes.getBigInt64(start, true) === -1n) return packed;
    read += unpacked;
    if (read > MAX_READ_BYTES)
      throw new RangeError("a batch has too many compressed views or indices; send it in several");
    return unpack(isLz4 ? "lz4" : "zstd", packed, unpacked);
  }
  return {
    node() {
      if (node >= nodes.length) throw new RangeError("an array is missing");
      const at = nodes.at + node++ * STRUCT_BYTES;
      const [length, nulls] = [readLength(view, at), readLength(view, at + 8)];
      if (nulls > length) throw new RangeError("an array has more nulls than values");
      return { length, nulls };
    },
    buffer() {
      if (buffer >= buffers.length) throw new RangeError("a buffer is missing");
      const at = buffers.at + buffer++ * STRUCT_BYTES;
      const [start, size] = [readLength(view, at), readLength(view, at + 8)];
      const unpacked = unpackedSize(start, size);
      last = { start, size, unpacked };
      total += unpacked;
      return unpacked;
    },
    repeat() {
      if (last === undefined || buffer >= buffers.length) return;
      const at = buffers.at + buffer * STRUCT_BYTES;
      if (readLength(view, at + 8) === 0) {
        view.setBigInt64(at, BigInt(last.start), true);
        view.setBigInt64(at + 8, BigInt(last.size), true);
        isCompleted = true;
      }
      if (readLength(view, at) === last.start && readLength(view, at + 8) === last.size)
        sharedBytes += last.size;
    },
    contents,
    variadic() {
      if (count >= counts.length) throw new RangeError("a count of variadic buffers is missing");
      return readLength(view, counts.at + count++ * COUNT_BYTES);
    },
    get unpackedBytes() {
      return total;
    },
    free(values, neededBytes) {
      total += Math.ceil(values * Math.max(1 / 8, neededBytes));
    },
    refer(field, length) {
      if (texts?.has(field) !== true) return;
      textBytes += texts.sizeOf(field, indices, length, contents);
      indices += length;
    },
    expand(bytes) {
      total += Math.max(0, bytes);
    },
    need(bytes) {
      needed += Math.max(0, bytes);
    },
    finish() {
      if (node !== nodes.length || buffer !== buffers.length || count !== counts.length) {
        throw new RangeError("there are more arrays or buffers than the schema has");
      }
      if (!Number.isSafeInteger(total)) throw new RangeError("the buffers are too large");
      return { unpackedBytes: total, neededBytes: total + needed, textBytes, isCompleted };
    },
  };
}

/**
 * Checks a field. Numbers here are lengths below 2^53. Their products may be inexact, but are far beyond any buffer then.
 *
 * @param least memory of a value in the engine, in bytes, if it has fewer of its own
 */
function checkField(field: ArrowField, expected: number, cursor: Cursor, least: number): void {
  const before = cursor.unpackedBytes;
  const { length, nulls } = cursor.node();
  if (length < expected) throw new RangeError(`column ${JSON.stringify(field.name)} has too few values`);
  const need = (bytes: number) => {
    const size = cursor.buffer();
    if (length > 0 && size < bytes) {
      throw new RangeError(`column ${JSON.stringify(field.name)} has too small a buffer`);
    }
    return size;
  };
  // The engine rejects a partial offset at the end.
  const needOffsets = (isLarge: boolean) => {
    const width = isLarge ? 8 : 4;
    if (need((length + 1) * width) % width !== 0) {
      throw new RangeError(`column ${JSON.stringify(field.name)} has a part of an offset`);
    }
  };
  const type = field.dictionary?.index ?? field.type;
  if (type.name === "null") {
    if (nulls !== length)
      throw new RangeError(`column ${JSON.stringify(field.name)} has values that are no nulls`);
    cursor.free(length, least);
    return;
  }
  const countValues = () => cursor.need(length * least - (cursor.unpackedBytes - before));
  need(nulls > 0 ? Math.ceil(length / 8) : 0);
  const validity = nulls > 0 && type.name.endsWith("_view") ? cursor.contents() : undefined;
  const width = bitWidth(type);
  if (width !== undefined) {
    if (width === 0) cursor.free(length, least);
    if (type.name === "bool" && nulls === length && length > 0) cursor.repeat();
    need(Math.ceil((length * width) / 8));
    if (length > 0) cursor.refer(field, length);
    countValues();
    return;
  }
  switch (type.name) {
    case "binary":
    case "utf8":
    case "large_binary":
    case "large_utf8":
      needOffsets(type.name.startsWith("large"));
      need(0);
      countValues();
      return;
    case "binary_view":
    case "utf8_view": {
      need(length * VIEW_BYTES);
      const bytes = length > 0 ? bytesInViews(cursor.contents(), length, validity) : 0;
      const start = cursor.unpackedBytes;
      for (let left = cursor.variadic(); left > 0; left--) need(0);
      cursor.expand(bytes - (cursor.unpackedBytes - start));
      countValues();
      return;
    }
    case "list":
    case "map":
    case "large_list":
      needOffsets(type.name === "large_list");
      checkChildren(field, 0, cursor, LIST_VALUE_BYTES);
      return;
    case "fixed_size_list":
      if (type.size === 0) cursor.free(length, least);
      cursor.need(length * least);
      checkChildren(field, length * type.size, cursor, FIXED_LIST_VALUE_BYTES);
      return;
    case "struct":
      if (field.children.length === 0) cursor.free(length, least);
      checkChildren(field, length, cursor, least);
      return;
  }
}

function checkChildren(field: ArrowField, length: number, cursor: Cursor, least: number): void {
  for (const child of field.children) checkField(child, length, cursor, least);
}

/** Returns the width of a value in bits; undefined for types that are not laid out value by value. */
export function bitWidth(type: ArrowType): number | undefined {
  switch (type.name) {
    case "bool":
      return 1;
    case "int":
    case "float":
    case "decimal":
    case "date":
    case "time":
    case "interval":
      return type.bits;
    case "timestamp":
    case "duration":
      return 64;
    case "fixed_size_binary":
      return type.width * 8;
    default:
      return undefined;
  }
}
