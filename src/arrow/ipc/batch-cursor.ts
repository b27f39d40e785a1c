import type { ArrowField } from "../schema.ts";
import type { DictionaryTexts } from "../upload/dictionary-texts.ts";
import { type FlatTable, readLength, readTable, readUint8, readVector } from "./flatbuffer.ts";
import { checkLz4Frame, unpack } from "./unpack.ts";

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

/** Goes over the arrays and buffers of a record batch in order, checks that they are there, and adds up their sizes. */
export interface BatchCursor {
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

/**
 * Begins before the first array of a record batch. Its functions throw RangeError for what is missing or does not fit together.
 *
 * @param batch the table of the record batch
 * @param body the message's body
 * @param texts the sizes of the texts in dictionaries
 */
export function createBatchCursor(
  batch: FlatTable,
  body: Uint8Array,
  texts: DictionaryTexts | undefined,
): BatchCursor {
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
