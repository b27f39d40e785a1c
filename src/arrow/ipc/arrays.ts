import { bitWidth } from "../bit-width.ts";
import type { ArrowField } from "../schema.ts";
import { type FlatTable, readVector } from "./flatbuffer.ts";

/** Size of a view, in bytes. */
export const VIEW_BYTES = 16;

/** Longest value that is within its view, in bytes. */
const SHORT_BYTES = 12;

/**
 * Returns the size of the values to which views refer, in bytes. The engine stores each of them, although any number of views may share the
 * bytes of one: 1 MB would become 2 GB by 2,000 views.
 *
 * @param validity bits of the values that are not null. Default: none is.
 */
export function bytesInViews(views: Uint8Array, length: number, validity: Uint8Array | undefined): number {
  const view = new DataView(views.buffer, views.byteOffset, views.byteLength);
  let bytes = 0;
  for (let i = 0; i < length; i++) {
    const size = view.getUint32(i * VIEW_BYTES, true);
    if (size > SHORT_BYTES && (validity === undefined || isSet(validity, i))) bytes += size;
  }
  return bytes;
}

/** Whether a bit is set. */
export function isSet(bits: Uint8Array, at: number): boolean {
  return (((bits[at >> 3] ?? 0) >> (at & 7)) & 1) === 1;
}

/** Size of an array's entry and of a buffer's entry in the metadata of a batch, in bytes. */
export const STRUCT_BYTES = 16;

/** Rows next to each other. */
export interface Range {
  readonly from: number;
  readonly count: number;
}

/** The arrays of a batch, in the order of its fields. */
export interface Arrays {
  /** Number of arrays passed so far. */
  readonly nodes: number;
  /** Number of buffers passed so far. */
  readonly buffers: number;
  /** Passes the arrays of a field. */
  skip(field: ArrowField): void;
  /** Returns the buffers of some rows of a field, and sets the array's length and nulls in the metadata. */
  select(field: ArrowField, ranges: readonly Range[]): Uint8Array[];
}

/** Walks over the arrays of a batch. */
export function createArrays(header: FlatTable, body: Uint8Array): Arrays {
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

  /** Takes a buffer of values of a fixed number of bits. */
  function fixed(bits: number, ranges: readonly Range[] | undefined): Uint8Array {
    const values = take();
    if (ranges === undefined) return values;
    return bits === 1 ? selectBits(values, ranges) : selectBytes(values, scaled(ranges, bits / 8));
  }

  /** Takes the buffers of a field: of the rows in the ranges, or of all rows. */
  function walk(field: ArrowField, ranges: readonly Range[] | undefined): Uint8Array[] {
    const at = nodeVector.at + node++ * STRUCT_BYTES;
    const count = ranges === undefined ? 0 : rowsIn(ranges);
    const type = field.dictionary?.index ?? field.type;
    if (type.name === "null") {
      if (ranges) setNode(view, at, count, count);
      return [];
    }
    const all = take();
    const validity = ranges && all.byteLength > 0 ? selectBits(all, ranges) : all;
    if (ranges) setNode(view, at, count, validity.byteLength === 0 ? 0 : zeros(validity, count));
    const children = field.dictionary === undefined ? field.children : [];
    const inner = (among: readonly Range[] | undefined) => children.flatMap((child) => walk(child, among));
    const width = bitWidth(type);
    if (width !== undefined) return [validity, fixed(width, ranges)];
    if (type.name === "struct") return [validity, ...inner(ranges)];
    if (type.name === "fixed_size_list") return [validity, ...inner(ranges && scaled(ranges, type.size))];
    if (type.name.endsWith("_view")) {
      const parts = [validity, fixed(128, ranges)];
      for (let left = Number(view.getBigInt64(counts.at + variadic++ * 8, true)); left > 0; left--) {
        parts.push(take());
      }
      return parts;
    }
    const offsets = take();
    const selected = ranges && selectOffsets(offsets, ranges, type.name.startsWith("large") ? 8 : 4);
    const parts = [validity, selected?.offsets ?? offsets];
    if (children.length > 0) return [...parts, ...inner(selected?.values)];
    const values = take();
    return [...parts, selected ? selectBytes(values, selected.values) : values];
  }
  return {
    get nodes() {
      return node;
    },
    get buffers() {
      return buffer;
    },
    skip: (field) => void walk(field, undefined),
    select: walk,
  };
}

/** Returns the number of rows in ranges. */
export function rowsIn(ranges: readonly Range[]): number {
  return ranges.reduce((sum, { count }) => sum + count, 0);
}

function scaled(ranges: readonly Range[], factor: number): Range[] {
  return ranges.map(({ from, count }) => ({ from: from * factor, count: count * factor }));
}

function setNode(view: DataView, at: number, length: number, nulls: number): void {
  view.setBigInt64(at, BigInt(length), true);
  view.setBigInt64(at + 8, BigInt(nulls), true);
}

function selectBytes(bytes: Uint8Array, ranges: readonly Range[]): Uint8Array {
  const parts = ranges.map(({ from, count }) => bytes.subarray(from, from + count));
  return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
}

/** Returns new offsets, and the ranges of the values that they select. */
function selectOffsets(bytes: Uint8Array, ranges: readonly Range[], width: 4 | 8) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const read = (row: number) =>
    width === 4 ? view.getInt32(row * width, true) : Number(view.getBigInt64(row * width, true));
  const offsets = Buffer.alloc((rowsIn(ranges) + 1) * width);
  const values: Range[] = [];
  let [at, end] = [0, 0];
  for (const { from, count } of ranges) {
    const start = read(from);
    for (let row = from + 1; row <= from + count; row++) {
      at += width;
      const offset = end + read(row) - start;
      if (width === 4) offsets.writeInt32LE(offset, at);
      else offsets.writeBigInt64LE(BigInt(offset), at);
    }
    const length = read(from + count) - start;
    values.push({ from: start, count: length });
    end += length;
  }
  return { offsets, values };
}

function selectBits(bits: Uint8Array, ranges: readonly Range[]): Uint8Array {
  const selected = new Uint8Array(Math.ceil(rowsIn(ranges) / 8));
  let to = 0;
  for (const { from, count } of ranges) {
    for (let at = from; at < from + count; at++, to++) {
      if (isSet(bits, at)) selected[to >> 3] = (selected[to >> 3] as number) | (1 << (to & 7));
    }
  }
  return selected;
}

function zeros(bits: Uint8Array, count: number): number {
  let ones = 0;
  for (let i = 0; i < count; i++) if (isSet(bits, i)) ones++;
  return count - ones;
}
