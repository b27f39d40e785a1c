// Readers of columns whose values have no parts.
import duckdb from "@duckdb/node-bindings";
import * as arrow from "apache-arrow";
import { type ColumnReader, isValid, openVector, type Source, Validity } from "./column-reader.ts";

const { Type } = duckdb;

/** Joins pieces of bytes. */
class Bytes {
  #bytes = new Uint8Array(4096);
  length = 0;

  /** Returns room for more bytes. */
  grow(count: number): Uint8Array {
    const needed = this.length + count;
    if (needed > this.#bytes.byteLength) {
      const grown = new Uint8Array(Math.max(needed, 2 * this.#bytes.byteLength));
      grown.set(this.#bytes.subarray(0, this.length));
      this.#bytes = grown;
    }
    const room = this.#bytes.subarray(this.length, needed);
    this.length = needed;
    return room;
  }

  finish(): Uint8Array {
    const all = this.#bytes.slice(0, this.length);
    this.length = 0;
    return all;
  }
}

/** Makes the array of values of a type from bytes. */
type MakeValues = (bytes: ArrayBuffer) => ArrayBufferView;

/** Reads values of a fixed size. */
export function fixed(
  type: arrow.DataType,
  { from: sourceBytes, to: targetBytes = sourceBytes }: { readonly from: number; readonly to?: number },
  make: MakeValues,
  convert?: (source: DataView, at: number, target: DataView, to: number) => void,
): ColumnReader {
  const validity = new Validity();
  const values = new Bytes();
  return {
    type,
    open: (vector, count) => openVector(vector, count, sourceBytes, []),
    append(source, from, count) {
      validity.append(source, from, count);
      const room = values.grow(count * targetBytes);
      const { buffer, byteOffset } = source.data;
      if (convert === undefined) {
        room.set(new Uint8Array(buffer as ArrayBuffer, byteOffset + from * sourceBytes, count * sourceBytes));
        return;
      }
      room.fill(0);
      const target = new DataView(room.buffer, room.byteOffset, room.byteLength);
      for (let i = 0; i < count; i++)
        if (isValid(source, from + i))
          convert(source.data, (from + i) * sourceBytes, target, i * targetBytes);
    },
    finish: () =>
      arrow.makeData({
        type,
        ...validity.finish(),
        data: make(values.finish().buffer as ArrayBuffer),
      } as never),
  };
}

/** Reads strings or bytes. */
export function strings(
  type: arrow.Utf8 | arrow.Binary,
  text?: (source: Source, at: number) => string,
  size = 16,
): ColumnReader {
  const validity = new Validity();
  const values = new Bytes();
  let offsets: number[] = [0];
  const encoder = new TextEncoder();
  return {
    type,
    open: (vector, count) => openVector(vector, count, size, []),
    append(source, from, count) {
      validity.append(source, from, count);
      for (let i = from; i < from + count; i++) {
        if (isValid(source, i)) {
          const bytes =
            text === undefined ? stringBytes(source.data, 16 * i) : encoder.encode(text(source, i));
          values.grow(bytes.byteLength).set(bytes);
        }
        offsets.push(values.length);
      }
      if (values.length > 0x7fff_ffff)
        throw new Error("a batch of the result has more than 2 GiB of strings");
    },
    finish() {
      const data = arrow.makeData({
        ...{ type, ...validity.finish() },
        ...{ valueOffsets: Int32Array.from(offsets), data: values.finish() },
      } as never);
      offsets = [0];
      return data;
    },
  };
}

const SHORT_STRING = 12;

/** Returns the bytes of a string, which stand in the vector if there are few, and elsewhere if there are many. */
export function stringBytes(data: DataView, at: number): Uint8Array {
  const length = data.getUint32(at, true);
  const buffer = data.buffer as ArrayBuffer;
  return length <= SHORT_STRING
    ? new Uint8Array(buffer, data.byteOffset + at + 4, length)
    : duckdb.get_data_from_pointer(buffer, data.byteOffset + at + 8, length);
}

/** Size of values that stay as they are. */
export const copied = (bytes: number) => ({ from: bytes });
const INFINITE_DAYS = 0x7fff_ffff;
const INFINITE_TIME = 2n ** 63n - 1n;
const MOST_OF_38_DIGITS = 10n ** 38n - 1n;

export function dates(): ColumnReader {
  return fixed(
    new arrow.DateDay(),
    copied(4),
    (b) => new Int32Array(b),
    (source, at, target, to) => {
      const days = source.getInt32(at, true);
      if (Math.abs(days) === INFINITE_DAYS) throw noInfinity("date");
      target.setInt32(to, days, true);
    },
  );
}

export function times(type: arrow.DataType, what: string): ColumnReader {
  return fixed(
    type,
    copied(8),
    (b) => new BigInt64Array(b),
    (source, at, target, to) => {
      const value = source.getBigInt64(at, true);
      if (value === INFINITE_TIME || value === -INFINITE_TIME) throw noInfinity(what);
      target.setBigInt64(to, value, true);
    },
  );
}

function noInfinity(what: string): Error {
  return new Error(
    `the result has an infinite ${what}, which Arrow does not have; cast the column to VARCHAR`,
  );
}

/** Reads integers of 128 bits as decimals of 38 digits. */
export function hugeIntegers(signed: boolean): ColumnReader {
  return fixed(
    new arrow.Decimal(0, 38),
    copied(16),
    (b) => new Uint32Array(b),
    (source, at, target, to) => {
      const low = source.getBigUint64(at, true);
      const high = signed ? source.getBigInt64(at + 8, true) : source.getBigUint64(at + 8, true);
      const value = (high << 64n) | low;
      if (value > MOST_OF_38_DIGITS || value < -MOST_OF_38_DIGITS)
        throw new Error("the result has an integer of more than 38 digits; cast the column to VARCHAR");
      target.setBigUint64(to, low, true);
      target.setBigInt64(to + 8, BigInt.asIntN(64, high), true);
    },
  );
}

export function decimals(type: duckdb.LogicalType): ColumnReader {
  const [width, scale] = [duckdb.decimal_width(type), duckdb.decimal_scale(type)];
  const arrowType = new arrow.Decimal(scale, width);
  const make: MakeValues = (b) => new Uint32Array(b);
  if (width > 18) return fixed(arrowType, copied(16), make);
  const bytes = width <= 4 ? 2 : width <= 9 ? 4 : 8;
  return fixed(arrowType, { from: bytes, to: 16 }, make, (source, at, target, to) => {
    const value =
      bytes === 8
        ? source.getBigInt64(at, true)
        : BigInt(bytes === 4 ? source.getInt32(at, true) : source.getInt16(at, true));
    target.setBigInt64(to, value, true);
    target.setBigInt64(to + 8, value < 0n ? -1n : 0n, true);
  });
}

/** Unit of intervals of months, days and nanoseconds, which the library has no name for. */
const MONTH_DAY_NANO = 2 as arrow.IntervalUnit;

/** Reads intervals of months, days and microseconds as months, days and nanoseconds. */
export function intervals(): ColumnReader {
  const type = new arrow.Interval(MONTH_DAY_NANO);
  const pairs = fixed(new arrow.Uint64(), copied(16), (b) => new BigUint64Array(b), convertInterval);
  return {
    ...pairs,
    type,
    finish() {
      const { length, nullCount, nullBitmap, values } = pairs.finish();
      // The library takes this unit for three numbers of 32 bits; as pairs of 64 bits, all four are written.
      return new arrow.Data(type, 0, length, nullCount, [undefined, values, nullBitmap] as never);
    },
  };
}

function convertInterval(source: DataView, at: number, target: DataView, to: number): void {
  target.setInt32(to, source.getInt32(at, true), true);
  target.setInt32(to + 4, source.getInt32(at + 4, true), true);
  const nanos = source.getBigInt64(at + 8, true) * 1000n;
  if (BigInt.asIntN(64, nanos) !== nanos)
    throw new Error("the result has an interval of more than 292 years in time; cast the column to VARCHAR");
  target.setBigInt64(to + 8, nanos, true);
}

export function booleans(): ColumnReader {
  const bytes = fixed(new arrow.Uint8(), copied(1), (b) => new Uint8Array(b));
  const type = new arrow.Bool();
  return {
    ...bytes,
    type,
    finish() {
      const { length, nullCount, nullBitmap, values } = bytes.finish();
      const bits = new Uint8Array((length + 7) >> 3);
      for (let i = 0; i < length; i++) if (values[i] === 1) (bits[i >> 3] as number) |= 1 << (i & 7);
      return arrow.makeData({ type, length, nullCount, nullBitmap, data: bits } as never);
    },
  };
}

export function enums(type: duckdb.LogicalType): ColumnReader {
  const internal = duckdb.enum_internal_type(type);
  const size = internal === Type.UTINYINT ? 1 : internal === Type.USMALLINT ? 2 : 4;
  const names = Array.from({ length: duckdb.enum_dictionary_size(type) }, (_, i) =>
    duckdb.enum_dictionary_value(type, i),
  );
  const index = ({ data }: Source, i: number) =>
    size === 1 ? data.getUint8(i) : size === 2 ? data.getUint16(2 * i, true) : data.getUint32(4 * i, true);
  return strings(new arrow.Utf8(), (source, i) => names[index(source, i)] as string, size);
}
