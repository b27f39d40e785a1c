import { type FlatTable, readInt64, readTable, readVector } from "./flatbuffer.ts";
import type { ArrowField, ArrowType } from "./schema.ts";

/**
 * Checks that the buffers of a record batch are large enough for what its arrays say of themselves.
 *
 * The engine takes those sizes on trust: a wrong one, and above all a wrong size of a compressed buffer once
 * it is unpacked, ends in an allocation that takes the whole process down.
 *
 * @param batch the table of the record batch
 * @param body the message's body
 * @returns the size of all buffers once they are unpacked, in bytes
 * @throws RangeError, for sizes that do not fit together.
 */
export function checkLayout(fields: readonly ArrowField[], batch: FlatTable, body: Uint8Array): number {
  const cursor = createCursor(batch, body);
  const rows = readInt64(batch, 0);
  for (const field of fields) checkField(field, rows, cursor);
  return cursor.finish();
}

interface Cursor {
  /** The next array: its length and its number of nulls. */
  node(): { length: bigint; nulls: bigint };
  /** The unpacked size of the next buffer, in bytes. */
  buffer(): bigint;
  /** The next count of variadic buffers, for view types. */
  variadic(): number;
  /** Checks that everything was used and returns the unpacked size of all buffers. */
  finish(): number;
}

const STRUCT_BYTES = 16;

function createCursor(batch: FlatTable, body: Uint8Array): Cursor {
  const { view } = batch;
  const [nodes, buffers, counts] = [readVector(batch, 1), readVector(batch, 2), readVector(batch, 4)];
  const compressed = readTable(batch, 3) !== undefined;
  const bytes = new DataView(body.buffer, body.byteOffset, body.byteLength);
  let [node, buffer, count, total] = [0, 0, 0, 0n];

  /** A compressed buffer begins with its unpacked size, or with -1 when it was left as it is. */
  function unpackedSize(start: number, size: number): bigint {
    if (!compressed || size === 0) return BigInt(size);
    if (size < 8) throw new RangeError("a compressed buffer is shorter than its header");
    const unpacked = bytes.getBigInt64(start, true);
    if (unpacked === -1n) return BigInt(size - 8);
    if (unpacked < 0n) throw new RangeError("a compressed buffer has a negative size");
    return unpacked;
  }
  return {
    node() {
      if (node >= nodes.length) throw new RangeError("an array is missing");
      const at = nodes.at + node++ * STRUCT_BYTES;
      const [length, nulls] = [view.getBigInt64(at, true), view.getBigInt64(at + 8, true)];
      if (length < 0n || nulls < 0n || nulls > length) throw new RangeError("an array has a wrong length");
      return { length, nulls };
    },
    buffer() {
      if (buffer >= buffers.length) throw new RangeError("a buffer is missing");
      const at = buffers.at + buffer++ * STRUCT_BYTES;
      const start = Number(view.getBigInt64(at, true));
      const size = unpackedSize(start, Number(view.getBigInt64(at + 8, true)));
      total += size;
      return size;
    },
    variadic() {
      if (count >= counts.length) throw new RangeError("a count of variadic buffers is missing");
      return Number(view.getBigInt64(counts.at + count++ * 8, true));
    },
    finish() {
      if (node !== nodes.length || buffer !== buffers.length) {
        throw new RangeError("there are more arrays or buffers than the schema has");
      }
      if (total > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError("the buffers are too large");
      return Number(total);
    },
  };
}

function checkField(field: ArrowField, expected: bigint, cursor: Cursor): void {
  const { length, nulls } = cursor.node();
  if (length < expected) throw new RangeError(`column ${JSON.stringify(field.name)} has too few values`);
  const need = (bytes: bigint) => {
    const size = cursor.buffer();
    if (length > 0n && size < bytes) {
      throw new RangeError(`column ${JSON.stringify(field.name)} has too small a buffer`);
    }
  };
  const type = field.dictionary?.index ?? field.type;
  if (type.name === "null") return;
  if (type.name === "union") throw new RangeError("unions are not supported");
  need(nulls > 0n ? (length + 7n) / 8n : 0n);
  const width = bitWidth(type);
  if (width !== undefined) {
    need((length * BigInt(width) + 7n) / 8n);
    return;
  }
  switch (type.name) {
    case "binary":
    case "utf8":
    case "large_binary":
    case "large_utf8":
      need((length + 1n) * (type.name.startsWith("large") ? 8n : 4n));
      need(0n);
      return;
    case "binary_view":
    case "utf8_view":
      need(length * 16n);
      for (let left = cursor.variadic(); left > 0; left--) need(0n);
      return;
    case "list":
    case "map":
    case "large_list":
      need((length + 1n) * (type.name === "large_list" ? 8n : 4n));
      checkChildren(field, 1, 0n, cursor);
      return;
    case "fixed_size_list":
      checkChildren(field, 1, length * BigInt(type.size), cursor);
      return;
    case "struct":
      checkChildren(field, field.children.length, length, cursor);
      return;
  }
}

function checkChildren(field: ArrowField, count: number, length: bigint, cursor: Cursor): void {
  if (field.children.length !== count) throw new RangeError("a nested type has a wrong number of children");
  for (const child of field.children) checkField(child, length, cursor);
}

/** The width of a value in bits; undefined for types that are not laid out value by value. */
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
