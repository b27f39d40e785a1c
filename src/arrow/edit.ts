import { bitWidth } from "./batch-check.ts";
import { type FlatTable, readInt64, readTable, readVector, rootTable, writeInt64 } from "./flatbuffer.ts";
import { readPrefix } from "./message.ts";
import type { ArrowField } from "./schema.ts";

/*
 * Changes to messages of the engine's results, for what the engine cannot leave out itself. The metadata keeps
 * its layout: vectors become shorter in place, and numbers are overwritten.
 */

const STRUCT_BYTES = 16;
const OFFSET_BYTES = 4;

/** A copy of a message, for changes. */
interface Message {
  readonly bytes: Buffer;
  readonly metadata: Uint8Array;
  readonly body: Uint8Array;
  readonly header: FlatTable;
}

function copyOf(message: Uint8Array): Message {
  const bytes = Buffer.from(message);
  const prefix = readPrefix(bytes, 0);
  const bodyAt = (prefix?.bytes ?? 0) + (prefix?.metadataLength ?? 0);
  const metadata = bytes.subarray(prefix?.bytes, bodyAt);
  const header = readTable(rootTable(metadata), 2);
  if (prefix === undefined || header === undefined) throw new Error("the engine's message has no header");
  return { bytes, metadata, body: bytes.subarray(bodyAt), header };
}

/** Returns a schema message without a field. */
export function dropField(message: Uint8Array, index: number): Uint8Array {
  const { bytes, header } = copyOf(message);
  const { at, length } = readVector(header, 1);
  for (let i = index; i < length - 1; i++) {
    const [from, to] = [at + (i + 1) * OFFSET_BYTES, at + i * OFFSET_BYTES];
    // An offset counts from its own position, which moves closer by one.
    header.view.setUint32(to, header.view.getUint32(from, true) + OFFSET_BYTES, true);
  }
  shorten(header, 1, 1);
  return bytes;
}

/** Returns a record batch without a column, which must be of fixed width; its bytes remain unused. */
export function dropColumn(message: Uint8Array, fields: readonly ArrowField[], index: number): Uint8Array {
  const { bytes, body, header } = copyOf(message);
  const arrays = createArrays(header, body);
  for (const field of fields.slice(0, index)) arrays.skip(field);
  for (const [vector, place, count] of [
    [1, arrays.nodes, 1],
    [2, arrays.buffers, 2],
  ] as const) {
    const { at } = readVector(header, vector);
    const bytesOf = new Uint8Array(header.view.buffer, header.view.byteOffset, header.view.byteLength);
    const end = at + readVector(header, vector).length * STRUCT_BYTES;
    bytesOf.copyWithin(at + place * STRUCT_BYTES, at + (place + count) * STRUCT_BYTES, end);
    shorten(header, vector, count);
  }
  return bytes;
}

function shorten(table: FlatTable, vector: number, by: number): void {
  const { at, length } = readVector(table, vector);
  table.view.setUint32(at - 4, length - by, true);
}

/** Returns a record batch with other values in a column, which must be 32-bit floats without nulls. */
export function replaceFloats(
  message: Uint8Array,
  fields: readonly ArrowField[],
  index: number,
  value: (row: number) => number,
): Uint8Array {
  const { bytes, values, rows } = columnOf(message, fields, index);
  for (let row = 0; row < rows; row++) values.setFloat32(row * 4, value(row), true);
  return bytes;
}

/** Returns a record batch with a number added to each value of its first column, which must be 32-bit integers. */
export function addToFirst(message: Uint8Array, added: number): Uint8Array {
  const { bytes, values, rows } = columnOf(message, [], 0);
  for (let row = 0; row < rows; row++) values.setInt32(row * 4, values.getInt32(row * 4, true) + added, true);
  return bytes;
}

/** Returns the values of a column of fixed width, in a copy of the message. */
function columnOf(message: Uint8Array, fields: readonly ArrowField[], index: number) {
  const { bytes, body, header } = copyOf(message);
  const arrays = createArrays(header, body);
  for (const field of fields.slice(0, index)) arrays.skip(field);
  const at = readVector(header, 2).at + (arrays.buffers + 1) * STRUCT_BYTES;
  const start = Number(header.view.getBigInt64(at, true));
  const values = new DataView(body.buffer, body.byteOffset + start, body.byteLength - start);
  return { bytes, values, rows: Number(readInt64(header, 0)) };
}

/** Returns a record batch without its first rows; `count` is smaller than the number of its rows. */
export function skipRows(message: Uint8Array, fields: readonly ArrowField[], count: number): Uint8Array {
  const { bytes, metadata, body, header } = copyOf(message);
  const rows = Number(readInt64(header, 0));
  const arrays = createArrays(header, body);
  const parts = fields.flatMap((field) => arrays.slice(field, count, rows - count));
  const buffers = readVector(header, 2);
  let length = 0;
  for (const [i, part] of parts.entries()) {
    const at = buffers.at + i * STRUCT_BYTES;
    header.view.setBigInt64(at, BigInt(length), true);
    header.view.setBigInt64(at + 8, BigInt(part.byteLength), true);
    length += padded(part.byteLength);
  }
  writeInt64(header, 0, BigInt(rows - count));
  writeInt64(rootTable(metadata), 3, BigInt(length));
  const result = Buffer.alloc(bytes.byteLength - body.byteLength + length);
  result.set(bytes.subarray(0, bytes.byteLength - body.byteLength));
  let position = result.byteLength - length;
  for (const part of parts) {
    result.set(part, position);
    position += padded(part.byteLength);
  }
  return result;
}

function padded(length: number): number {
  return Math.ceil(length / 8) * 8;
}

/** Walks over the arrays of a batch, in the order of the fields. */
function createArrays(header: FlatTable, body: Uint8Array) {
  const { view } = header;
  const [nodeVector, bufferVector, counts] = [
    readVector(header, 1),
    readVector(header, 2),
    readVector(header, 4),
  ];
  let [node, buffer, variadic] = [0, 0, 0];
  const take = () => {
    const at = bufferVector.at + buffer++ * STRUCT_BYTES;
    const start = Number(view.getBigInt64(at, true));
    return body.subarray(start, start + Number(view.getBigInt64(at + 8, true)));
  };

  /** Walks over the buffers of a field, from which `change` makes new ones. */
  function walk(field: ArrowField, range: Range | undefined): Uint8Array[] {
    const at = nodeVector.at + node++ * STRUCT_BYTES;
    const type = field.dictionary?.index ?? field.type;
    if (type.name === "null") {
      if (range) setNode(view, at, range.count, range.count);
      return [];
    }
    const validity = take();
    const parts = [validity];
    if (range) {
      parts[0] = validity.byteLength === 0 ? validity : sliceBits(validity, range);
      setNode(
        view,
        at,
        range.count,
        validity.byteLength === 0 ? 0 : zeros(parts[0] as Uint8Array, range.count),
      );
    }
    const fixed = (bits: number, extra = 0) => {
      const values = take();
      if (!range) return values;
      if (bits === 1) return sliceBits(values, range);
      const width = bits / 8;
      return values.subarray(range.from * width, (range.from + range.count + extra) * width);
    };
    const width = bitWidth(type);
    const children = field.dictionary === undefined ? field.children : [];
    if (width !== undefined) parts.push(fixed(width));
    else if (type.name === "struct") parts.push(...children.flatMap((child) => walk(child, range)));
    else if (type.name === "fixed_size_list") {
      const inner = range && { from: range.from * type.size, count: range.count * type.size };
      parts.push(...children.flatMap((child) => walk(child, inner)));
    } else if (type.name.endsWith("_view")) {
      parts.push(fixed(128));
      for (let left = Number(view.getBigInt64(counts.at + variadic++ * 8, true)); left > 0; left--) {
        parts.push(take());
      }
    } else {
      // The offsets of the remaining rows point at the same values as before.
      parts.push(fixed(type.name.startsWith("large") ? 64 : 32, 1));
      if (children.length === 0) parts.push(take());
      else parts.push(...children.flatMap((child) => walk(child, undefined)));
    }
    return parts;
  }
  return {
    /** Number of arrays passed so far. */
    get nodes() {
      return node;
    },
    /** Number of buffers passed so far. */
    get buffers() {
      return buffer;
    },
    skip: (field: ArrowField) => void walk(field, undefined),
    /** Returns the buffers of a range of a field's rows, and sets the array's length and nulls in the metadata. */
    slice: (field: ArrowField, from: number, count: number) => walk(field, { from, count }),
  };
}

interface Range {
  readonly from: number;
  readonly count: number;
}

function setNode(view: DataView, at: number, length: number, nulls: number): void {
  view.setBigInt64(at, BigInt(length), true);
  view.setBigInt64(at + 8, BigInt(nulls), true);
}

function sliceBits(bits: Uint8Array, { from, count }: Range): Uint8Array {
  const slice = new Uint8Array(Math.ceil(count / 8));
  for (let i = 0; i < count; i++) {
    const at = from + i;
    if (((bits[at >> 3] ?? 0) >> (at & 7)) & 1) slice[i >> 3] = (slice[i >> 3] as number) | (1 << (i & 7));
  }
  return slice;
}

function zeros(bits: Uint8Array, count: number): number {
  let ones = 0;
  for (let i = 0; i < count; i++) ones += ((bits[i >> 3] as number) >> (i & 7)) & 1;
  return count - ones;
}
