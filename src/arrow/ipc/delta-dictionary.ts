import { LanceError } from "../../namespace/errors.ts";
import { bitWidth } from "../bit-width.ts";
import type { ArrowField } from "../schema.ts";
import { readInt64, readTable, readVector, rootTable } from "./flatbuffer.ts";
import { CONTINUATION } from "./message.ts";

/*
 * An IPC file cannot replace a dictionary, as a stream can, but it can add to one. So a dictionary that would
 * replace another one is added behind it, and the indices of the batches that follow are moved by as much.
 */

/** Sizes of the FlatBuffers head that {@link asDelta} puts before a dictionary's own metadata, in bytes. */
const HEAD = { message: 24, dictionary: 64, rest: 88 } as const;

/** Returns the number of values of a dictionary message. */
export function dictionaryLength(metadata: Uint8Array): number {
  return Number(readInt64(valuesOf(metadata), 0));
}

/** Returns the metadata of a dictionary message, with its prefix, marked as an addition to the previous one. */
export function asDelta(metadata: Uint8Array, id: bigint, version: number, bodyLength: number): Uint8Array {
  const padded = Math.ceil(metadata.byteLength / 8) * 8;
  const framed = Buffer.alloc(8 + HEAD.rest + padded);
  framed.writeUInt32LE(CONTINUATION, 0);
  framed.writeInt32LE(HEAD.rest + padded, 4);
  const bytes = framed.subarray(8);
  bytes.writeUInt32LE(HEAD.message, 0);
  // The message's vtable: its size, the table's size, and the positions of version, kind, header and body length.
  for (const [i, value] of [12, 24, 4, 6, 8, 16].entries()) bytes.writeUInt16LE(value, 4 + i * 2);
  bytes.writeInt32LE(HEAD.message - 4, HEAD.message);
  bytes.writeInt16LE(version, HEAD.message + 4);
  bytes.writeUInt8(2, HEAD.message + 6);
  bytes.writeUInt32LE(HEAD.dictionary - HEAD.message - 8, HEAD.message + 8);
  bytes.writeBigInt64LE(BigInt(bodyLength), HEAD.message + 16);
  // The dictionary's vtable, with the positions of id, values and the mark.
  for (const [i, value] of [10, 24, 8, 16, 4].entries()) bytes.writeUInt16LE(value, 48 + i * 2);
  bytes.writeInt32LE(HEAD.dictionary - 48, HEAD.dictionary);
  bytes.writeUInt8(1, HEAD.dictionary + 4);
  bytes.writeBigInt64LE(id, HEAD.dictionary + 8);
  bytes.writeUInt32LE(HEAD.rest + valuesOf(metadata).at - HEAD.dictionary - 16, HEAD.dictionary + 16);
  bytes.set(metadata, HEAD.rest);
  return framed;
}

/** Returns the table of the values inside the metadata of a dictionary message. */
function valuesOf(metadata: Uint8Array) {
  const header = readTable(rootTable(metadata), 2);
  const values = header && readTable(header, 1);
  if (values === undefined) throw new RangeError("a dictionary has no values");
  return values;
}

/** Position of a dictionary's values within the merged dictionary of a file. */
export interface Shift {
  /** Distance that its indices move. */
  readonly by: number;
  /** Number of values of the merged dictionary. */
  readonly total: number;
}

/**
 * Moves the indices of a record batch, in place.
 *
 * @param shifts by the id of the dictionary
 * @throws LanceError Unsupported, if the indices are too small for the merged dictionary, or compressed.
 */
export function shiftIndices(
  fields: readonly ArrowField[],
  metadata: Uint8Array,
  body: Buffer,
  shifts: ReadonlyMap<bigint, Shift>,
): void {
  const batch = readTable(rootTable(metadata), 2);
  if (batch === undefined) throw new RangeError("a batch has no header");
  if (readTable(batch, 3) !== undefined) throw unsupported("its batches are compressed");
  const [buffers, variadic] = [readVector(batch, 2), readVector(batch, 4)];
  let [next, nextVariadic] = [0, 0];

  function visit(field: ArrowField): void {
    const type = field.dictionary?.index ?? field.type;
    if (type.name === "null") return;
    next++;
    if (bitWidth(type) !== undefined) {
      const shift = field.dictionary && shifts.get(field.dictionary.id);
      if (shift !== undefined && shift.by > 0 && field.dictionary !== undefined) {
        const at = buffers.at + next * 16;
        const start = Number(batch?.view.getBigInt64(at, true));
        const length = Number(batch?.view.getBigInt64(at + 8, true));
        const { bits, signed } = field.dictionary.index;
        if (shift.total > 2 ** (signed ? bits - 1 : bits)) throw unsupported("its indices are too small");
        shiftAll(body.subarray(start, start + length), bits, shift.by);
      }
      next++;
      return;
    }
    switch (type.name) {
      case "struct":
      case "fixed_size_list":
        break;
      case "list":
      case "large_list":
      case "map":
        next++;
        break;
      case "utf8_view":
      case "binary_view":
        next += 1 + Number(batch?.view.getBigInt64(variadic.at + nextVariadic++ * 8, true));
        break;
      case "utf8":
      case "binary":
      case "large_utf8":
      case "large_binary":
        next += 2;
        break;
      default:
        throw unsupported(`column ${JSON.stringify(field.name)} has type ${type.name}`);
    }
    for (const child of field.children) visit(child);
  }
  for (const field of fields) visit(field);
}

/** Indices of nulls may have any value; they wrap around. */
function shiftAll(bytes: Buffer, bits: 8 | 16 | 32 | 64, by: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.byteLength; at += bits / 8) {
    if (bits === 8) view.setUint8(at, view.getUint8(at) + by);
    else if (bits === 16) view.setUint16(at, view.getUint16(at, true) + by, true);
    else if (bits === 32) view.setUint32(at, view.getUint32(at, true) + by, true);
    else view.setBigUint64(at, view.getBigUint64(at, true) + BigInt(by), true);
  }
}

function unsupported(reason: string): LanceError {
  return new LanceError(
    "Unsupported",
    `a dictionary of the result changes, which an Arrow IPC file cannot hold because ${reason}; ask for an Arrow IPC stream`,
  );
}
