import { createArrays, type Range, rowsIn, STRUCT_BYTES } from "./ipc/arrays.ts";
import { type FlatTable, readInt64, readTable, readVector, rootTable, writeInt64 } from "./ipc/flatbuffer.ts";
import { readPrefix } from "./ipc/message.ts";
import type { ArrowField } from "./schema.ts";

/*
 * Changes to messages of the engine's results, for what the engine cannot leave out itself. The metadata keeps
 * its layout: vectors become shorter in place, and numbers are overwritten.
 */

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

/** Returns the values of a column, which must be unsigned 64-bit integers without nulls. */
export function integersOf(message: Uint8Array, fields: readonly ArrowField[], index: number): bigint[] {
  const { values, rows } = columnOf(message, fields, index);
  return Array.from({ length: rows }, (_, row) => values.getBigUint64(row * 8, true));
}

/** Returns the ranges of the rows whose values in such a column are among others. */
export function rowsAmong(
  message: Uint8Array,
  fields: readonly ArrowField[],
  index: number,
  among: ReadonlySet<bigint>,
): Range[] {
  const isAmong = integersOf(message, fields, index).map((value) => among.has(value));
  const ranges: Range[] = [];
  for (let row = 0; row < isAmong.length; row++) {
    if (!isAmong[row]) continue;
    const from = row;
    while (isAmong[row + 1]) row++;
    ranges.push({ from, count: row + 1 - from });
  }
  return ranges;
}

/** Returns a record batch with some of its rows, at least one, in their order. */
export function selectRows(
  message: Uint8Array,
  fields: readonly ArrowField[],
  ranges: readonly Range[],
): Uint8Array {
  const { bytes, metadata, body, header } = copyOf(message);
  const arrays = createArrays(header, body);
  const parts = fields.flatMap((field) => arrays.select(field, ranges));
  const buffers = readVector(header, 2);
  let length = 0;
  for (const [i, part] of parts.entries()) {
    const at = buffers.at + i * STRUCT_BYTES;
    header.view.setBigInt64(at, BigInt(length), true);
    header.view.setBigInt64(at + 8, BigInt(part.byteLength), true);
    length += padded(part.byteLength);
  }
  writeInt64(header, 0, BigInt(rowsIn(ranges)));
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
