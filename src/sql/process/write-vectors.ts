// Copies columns of Arrow into vectors of DuckDB.
import duckdb from "@duckdb/node-bindings";
import { type Data, DataType, type Date_, DateUnit, type Float, Precision, Type } from "apache-arrow";
import { isSet } from "../../arrow/ipc/arrays.ts";
import type { SqlType } from "../column-types.ts";

/** Copies rows of a column, from one of them on, to the beginning of a vector. */
export type WriteVector = (vector: duckdb.Vector, data: Data, from: number, count: number) => void;

/** Size of a string in a vector, and of the longest one that stands in it as a whole, in bytes. */
const STRING_BYTES = 16;
const SHORT_STRING = 12;

/**
 * Returns the writer of a column.
 *
 * @throws Error from the writer, for a value that the type of DuckDB cannot hold
 */
export function vectorWriter(type: SqlType): WriteVector {
  const write = valuesWriter(type);
  return (vector, data, from, count) => {
    if (DataType.isDictionary(data.type)) writeDictionary(write, vector, data, from, count);
    else write(vector, data, from, count);
    writeValidity(vector, data, from, count);
  };
}

function valuesWriter(type: SqlType): WriteVector {
  switch (type.id) {
    case "VARCHAR":
    case "BLOB":
      return writeStrings;
    case "BOOLEAN":
      return writeBooleans;
    case "FLOAT":
      return (vector, data, from, count) =>
        (data.type as Float).precision === Precision.HALF
          ? writeHalves(vector, data, from, count)
          : copyValues(vector, data, from, count);
    case "DECIMAL":
      return decimalWriter(type.width);
    case "DATE":
      return writeDates;
    case "TIME":
    case "TIMESTAMP_TZ":
      return writeMicroseconds;
    case "INTERVAL":
      return writeDurations;
    case "LIST":
      return listWriter(vectorWriter(type.child));
    case "ARRAY":
      return arrayWriter(vectorWriter(type.child), type.size);
    case "MAP": {
      const entries = structWriter([vectorWriter(type.key), vectorWriter(type.value)]);
      return listWriter((vector, data, from, count) => {
        entries(vector, data, from, count);
        writeValidity(vector, data, from, count);
      });
    }
    case "STRUCT":
      return structWriter(type.types.map(vectorWriter));
    default:
      return copyValues;
  }
}

function writeValidity(vector: duckdb.Vector, data: Data, from: number, count: number): void {
  if (data.typeId === Type.Null) {
    setValidity(vector, new Uint8Array(Math.ceil(count / 64) * 8));
    return;
  }
  if (data.nullCount === 0 || data.nullBitmap.byteLength === 0) return;
  const bits = new Uint8Array(Math.ceil(count / 64) * 8);
  copyBits(data.nullBitmap, from, bits, count);
  setValidity(vector, bits);
}

function setValidity(vector: duckdb.Vector, bits: Uint8Array): void {
  if (bits.byteLength === 0) return;
  duckdb.vector_ensure_validity_writable(vector);
  duckdb.copy_data_to_vector_validity(
    vector,
    0,
    bits.buffer as ArrayBuffer,
    bits.byteOffset,
    bits.byteLength,
  );
}

function copyBits(source: Uint8Array, from: number, target: Uint8Array, count: number): void {
  if (from % 8 === 0) {
    target.set(source.subarray(from / 8, Math.ceil((from + count) / 8)));
    return;
  }
  for (let i = 0; i < count; i++) if (isSet(source, from + i)) (target[i >> 3] as number) |= 1 << (i & 7);
}

function copy(vector: duckdb.Vector, values: ArrayBufferView, bytes = values.byteLength): void {
  if (bytes > 0)
    duckdb.copy_data_to_vector(vector, 0, values.buffer as ArrayBuffer, values.byteOffset, bytes);
}

/** Copies values of a fixed size, which are the same in both. */
function copyValues(vector: duckdb.Vector, data: Data, from: number, count: number): void {
  if (data.typeId !== Type.Null) copy(vector, data.values.subarray(from, from + count));
}

function writeBooleans(vector: duckdb.Vector, data: Data, from: number, count: number): void {
  const bytes = new Uint8Array(count);
  for (let i = 0; i < count; i++) bytes[i] = isSet(data.values, from + i) ? 1 : 0;
  copy(vector, bytes);
}

function writeHalves(vector: duckdb.Vector, data: Data, from: number, count: number): void {
  const halves = (data.values as Uint16Array).subarray(from, from + count);
  copy(vector, Float32Array.from(halves, floatOfHalf));
}

/** Returns the value of 16 bits of IEEE 754. */
function floatOfHalf(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const [exponent, fraction] = [(half >> 10) & 0x1f, half & 0x3ff];
  if (exponent === 0) return sign * 2 ** -24 * fraction;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * 2 ** (exponent - 25) * (0x400 + fraction);
}

function writeStrings(vector: duckdb.Vector, data: Data, from: number, count: number): void {
  placeStrings(vector, data, count, (i) => (isValid(data, from + i) ? from + i : -1));
}

/** Returns where the bytes of a row of strings or bytes begin; those of a row end where the next begins. */
function startsIn(data: Data): (row: number) => number {
  if (DataType.isFixedSizeBinary(data.type)) {
    const { byteWidth } = data.type;
    return (row) => row * byteWidth;
  }
  const offsets = data.valueOffsets as Int32Array | BigInt64Array;
  return offsets instanceof Int32Array
    ? (row) => offsets[row] as number
    : (row) => Number(offsets[row] as bigint);
}

/**
 * Writes strings: short ones stand in the vector itself.
 *
 * @param values strings or bytes
 * @param rowAt returns the row of them for a row of the vector; -1 for a null
 */
function placeStrings(
  vector: duckdb.Vector,
  values: Data,
  count: number,
  rowAt: (row: number) => number,
): void {
  const bytes = values.values as Uint8Array;
  const start = startsIn(values);
  const strings = new Uint8Array(count * STRING_BYTES);
  const lengths = new Uint32Array(strings.buffer);
  const long: number[] = [];
  for (let i = 0; i < count; i++) {
    const row = rowAt(i);
    if (row < 0) continue;
    const [from, to] = [start(row), start(row + 1)];
    if (to - from > SHORT_STRING) {
      long.push(i, from, to);
      continue;
    }
    lengths[4 * i] = to - from;
    // A call for so few bytes takes longer than their loop.
    for (let at = from, target = i * STRING_BYTES + 4; at < to; at++, target++)
      strings[target] = bytes[at] as number;
  }
  copy(vector, strings);
  for (let i = 0; i < long.length; i += 3) {
    const value = bytes.subarray(long[i + 1], long[i + 2]);
    duckdb.vector_assign_string_element_len(vector, long[i] as number, value);
  }
}

function isValid(data: Data, row: number): boolean {
  return data.nullCount === 0 || data.nullBitmap.byteLength === 0 || isSet(data.nullBitmap, row);
}

/** DuckDB holds decimals in as few bytes as their width needs, Arrow in 16. */
function decimalWriter(width: number): WriteVector {
  const bytes = width <= 4 ? 2 : width <= 9 ? 4 : width <= 18 ? 8 : 16;
  return (vector, data, from, count) => {
    const source = (data.values as Uint32Array).subarray(4 * from, 4 * (from + count));
    switch (bytes) {
      case 16:
        copy(vector, source);
        return;
      case 8: {
        const target = new Uint32Array(2 * count);
        for (let i = 0; i < count; i++) {
          target[2 * i] = source[4 * i] as number;
          target[2 * i + 1] = source[4 * i + 1] as number;
        }
        copy(vector, target);
        return;
      }
      default: {
        const target = bytes === 4 ? new Uint32Array(count) : new Uint16Array(count);
        for (let i = 0; i < count; i++) target[i] = source[4 * i] as number;
        copy(vector, target);
      }
    }
  };
}

const DAY_MS = 86_400_000n;

function writeDates(vector: duckdb.Vector, data: Data, from: number, count: number): void {
  // A date in milliseconds is held as pairs of 32 bits.
  if ((data.type as Date_).unit === DateUnit.DAY) {
    copyValues(vector, data, from, count);
    return;
  }
  const source = wide(data, from, count);
  const days = new Int32Array(count);
  for (let i = 0; i < count; i++)
    if (isValid(data, from + i)) days[i] = Number(exactly(source[i] as bigint, DAY_MS, "date"));
  copy(vector, days);
}

/** Returns 64-bit values, however the library holds them. */
function wide(data: Data, from: number, count: number): BigInt64Array {
  const { buffer, byteOffset } = data.values as ArrayBufferView;
  return new BigInt64Array(buffer as ArrayBuffer, byteOffset + 8 * from, count);
}

/** Divides without a rest. */
function exactly(value: bigint, unit: bigint, what: string): bigint {
  if (value % unit !== 0n)
    throw new Error(`a ${what} of the table is finer than the type that SQL has for it`);
  return value / unit;
}

/** Number of microseconds in a unit of Arrow: seconds, milliseconds, microseconds. */
const MICROSECONDS = [1_000_000n, 1_000n, 1n];
const LARGEST = 2n ** 63n - 2n;

function toMicroseconds(value: bigint, unit: number, what: string): bigint {
  const factor = MICROSECONDS[unit];
  if (factor === undefined) return exactly(value, 1_000n, what);
  const result = value * factor;
  // The largest value and its negative mean infinity.
  if (result > LARGEST || result < -LARGEST)
    throw new Error(`a ${what} of the table is outside of the range that SQL has for it`);
  return result;
}

function microsecondsOf(data: Data, from: number, count: number, what: string): BigInt64Array {
  const { unit, bitWidth } = data.type as unknown as { unit: number; bitWidth?: number };
  const values = new BigInt64Array(count);
  const source = bitWidth === 32 ? undefined : wide(data, from, count);
  for (let i = 0; i < count; i++) {
    if (!isValid(data, from + i)) continue;
    const value = source === undefined ? BigInt(data.values[from + i] as number) : (source[i] as bigint);
    values[i] = toMicroseconds(value, unit, what);
  }
  return values;
}

function writeMicroseconds(vector: duckdb.Vector, data: Data, from: number, count: number): void {
  copy(vector, microsecondsOf(data, from, count, "time"));
}

/** An interval of DuckDB has months and days of 32 bits, and microseconds. */
function writeDurations(vector: duckdb.Vector, data: Data, from: number, count: number): void {
  const micros = microsecondsOf(data, from, count, "duration");
  const intervals = new BigInt64Array(2 * count);
  for (let i = 0; i < count; i++) intervals[2 * i + 1] = micros[i] as bigint;
  copy(vector, intervals);
}

function listWriter(writeChild: WriteVector): WriteVector {
  return (vector, data, from, count) => {
    const fixed = DataType.isFixedSizeList(data.type) ? data.type.listSize : undefined;
    const offsets = data.valueOffsets as Int32Array;
    const start = (row: number) => (fixed === undefined ? Number(offsets[row]) : row * fixed);
    const first = start(from);
    const entries = new BigUint64Array(2 * count);
    for (let i = 0; i < count; i++) {
      entries[2 * i] = BigInt(start(from + i) - first);
      entries[2 * i + 1] = BigInt(start(from + i + 1) - start(from + i));
    }
    const items = start(from + count) - first;
    duckdb.list_vector_reserve(vector, items);
    duckdb.list_vector_set_size(vector, items);
    writeChild(duckdb.list_vector_get_child(vector), data.children[0] as Data, first, items);
    copy(vector, entries);
  };
}

function arrayWriter(writeChild: WriteVector, size: number): WriteVector {
  return (vector, data, from, count) =>
    writeChild(duckdb.array_vector_get_child(vector), data.children[0] as Data, from * size, count * size);
}

function structWriter(writeChildren: readonly WriteVector[]): WriteVector {
  return (vector, data, from, count) => {
    for (const [i, writeChild] of writeChildren.entries())
      writeChild(duckdb.struct_vector_get_child(vector, i), data.children[i] as Data, from, count);
  };
}

/** Writes the values that the indices of a dictionary stand for. */
function writeDictionary(write: WriteVector, vector: duckdb.Vector, data: Data, from: number, count: number) {
  const [values, ...others] = data.dictionary?.data ?? [];
  if (values === undefined || others.length > 0) {
    if (count > 0 && data.nullCount < data.length)
      throw new Error("a dictionary of the table comes in parts");
    return;
  }
  if (values.nullCount > 0) throw new Error("a dictionary of the table has nulls among its values");
  const indices = data.values as ArrayLike<number | bigint>;
  if (DataType.isUtf8(values.type) || DataType.isLargeUtf8(values.type) || DataType.isBinary(values.type)) {
    placeStrings(vector, values, count, (i) => (isValid(data, from + i) ? Number(indices[from + i]) : -1));
    return;
  }
  if (ArrayBuffer.isView(values.values) && values.stride === 1 && !DataType.isBool(values.type)) {
    const all = values.values as Int32Array;
    const gathered = new (all.constructor as Int32ArrayConstructor)(count);
    for (let i = 0; i < count; i++)
      if (isValid(data, from + i)) gathered[i] = all[Number(indices[from + i])] as number;
    write(vector, { ...shell(values), values: gathered } as unknown as Data, 0, count);
    return;
  }
  throw new Error(`a dictionary of the table has values of the type ${values.type}, which SQL does not read`);
}

function shell({ type, typeId, stride }: Data) {
  return { type, typeId, stride, nullCount: 0, nullBitmap: new Uint8Array(), children: [] };
}
