// Reads vectors of DuckDB into columns of Arrow. A type of DuckDB has one place here: `columnReader`.
import duckdb from "@duckdb/node-bindings";
import * as arrow from "apache-arrow";
import { bitText, timeWithZoneText, uuidText } from "./texts.ts";

/** A vector whose values are read. */
interface Source {
  readonly vector: duckdb.Vector;
  readonly data: DataView;
  readonly validity: Uint8Array | null;
  readonly children: readonly Source[];
}

/** Collects the values of a column, batch by batch. */
export interface ColumnReader {
  readonly type: arrow.DataType;
  /** Opens a vector of so many values. */
  open(vector: duckdb.Vector, count: number): Source;
  /** Adds some values of a vector. */
  append(source: Source, from: number, count: number): void;
  /** Returns the values since the last time. */
  finish(): arrow.Data;
}

const { Type } = duckdb;

/** Bits that tell which values are there. */
class Validity {
  #bits = new Uint8Array(512);
  length = 0;
  nulls = 0;

  append({ validity }: Source, from: number, count: number): void {
    const needed = (this.length + count + 7) >> 3;
    if (needed > this.#bits.byteLength) {
      const grown = new Uint8Array(Math.max(needed, 2 * this.#bits.byteLength));
      grown.set(this.#bits);
      this.#bits = grown;
    }
    for (let i = 0; i < count; i++, this.length++) {
      if (validity === null || isSet(validity, from + i))
        (this.#bits[this.length >> 3] as number) |= 1 << (this.length & 7);
      else this.nulls++;
    }
  }

  finish(): {
    readonly length: number;
    readonly nullCount: number;
    readonly nullBitmap: Uint8Array | undefined;
  } {
    const { length, nulls: nullCount } = this;
    const nullBitmap = nullCount === 0 ? undefined : this.#bits.slice(0, (length + 7) >> 3);
    this.#bits.fill(0);
    this.length = 0;
    this.nulls = 0;
    return { length, nullCount, nullBitmap };
  }
}

function isSet(bits: Uint8Array, at: number): boolean {
  return (((bits[at >> 3] as number) >> (at & 7)) & 1) === 1;
}

function isValid({ validity }: Source, at: number): boolean {
  return validity === null || isSet(validity, at);
}

function openVector(
  vector: duckdb.Vector,
  count: number,
  bytes: number,
  children: readonly Source[],
): Source {
  const data = duckdb.vector_get_data(vector, count * bytes);
  const validity = duckdb.vector_get_validity(vector, Math.ceil(count / 64) * 8) as Uint8Array | null;
  return { vector, data: new DataView(data.buffer, data.byteOffset, data.byteLength), validity, children };
}

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
function fixed(
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
function strings(
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
function stringBytes(data: DataView, at: number): Uint8Array {
  const length = data.getUint32(at, true);
  const buffer = data.buffer as ArrayBuffer;
  return length <= SHORT_STRING
    ? new Uint8Array(buffer, data.byteOffset + at + 4, length)
    : duckdb.get_data_from_pointer(buffer, data.byteOffset + at + 8, length);
}

function lists(make: (child: arrow.DataType) => arrow.DataType, child: ColumnReader): ColumnReader {
  const validity = new Validity();
  let offsets: number[] = [0];
  const type = make(child.type);
  return {
    type,
    open(vector, count) {
      const items = duckdb.list_vector_get_size(vector);
      return openVector(vector, count, 16, [child.open(duckdb.list_vector_get_child(vector), items)]);
    },
    append(source, from, count) {
      validity.append(source, from, count);
      for (let i = from; i < from + count; i++) {
        let items = 0;
        if (isValid(source, i)) {
          items = Number(source.data.getBigUint64(16 * i + 8, true));
          child.append(source.children[0] as Source, Number(source.data.getBigUint64(16 * i, true)), items);
        }
        offsets.push((offsets.at(-1) as number) + items);
      }
    },
    finish() {
      const valueOffsets = Int32Array.from(offsets);
      offsets = [0];
      return arrow.makeData({ type, ...validity.finish(), valueOffsets, child: child.finish() } as never);
    },
  };
}

function arrays(child: ColumnReader, size: number): ColumnReader {
  const validity = new Validity();
  const type = new arrow.FixedSizeList(size, field("item", child.type));
  return {
    type,
    open: (vector, count) =>
      openVector(vector, count, 0, [child.open(duckdb.array_vector_get_child(vector), count * size)]),
    append(source, from, count) {
      validity.append(source, from, count);
      child.append(source.children[0] as Source, from * size, count * size);
    },
    finish: () => arrow.makeData({ type, ...validity.finish(), child: child.finish() } as never),
  };
}

function structs(names: readonly string[], members: readonly ColumnReader[]): ColumnReader {
  const validity = new Validity();
  const type = new arrow.Struct(members.map((member, i) => field(names[i] as string, member.type)));
  return {
    type,
    open: (vector, count) =>
      openVector(
        vector,
        count,
        0,
        members.map((member, i) => member.open(duckdb.struct_vector_get_child(vector, i), count)),
      ),
    append(source, from, count) {
      validity.append(source, from, count);
      for (const [i, member] of members.entries()) member.append(source.children[i] as Source, from, count);
    },
    finish: () =>
      arrow.makeData({
        ...{ type, ...validity.finish() },
        children: members.map((member) => member.finish()),
      } as never),
  };
}

/** Reads unions, which DuckDB holds as structs whose first member is the tag. */
function unions(names: readonly string[], members: readonly ColumnReader[]): ColumnReader {
  let typeIds: number[] = [];
  const fields = members.map((member, i) => field(names[i] as string, member.type));
  const type = new arrow.SparseUnion(fields.map((_, i) => i) as never, fields);
  return {
    type,
    open(vector, count) {
      const tag = openVector(duckdb.struct_vector_get_child(vector, 0), count, 1, []);
      const values = members.map((member, i) =>
        member.open(duckdb.struct_vector_get_child(vector, i + 1), count),
      );
      return openVector(vector, count, 0, [tag, ...values]);
    },
    append(source, from, count) {
      const [tag, ...values] = source.children as readonly [Source, ...Source[]];
      // A null is the null of the first member.
      for (let i = from; i < from + count; i++) typeIds.push(isValid(tag, i) ? tag.data.getUint8(i) : 0);
      for (const [i, member] of members.entries()) member.append(values[i] as Source, from, count);
    },
    finish() {
      const ids = Int8Array.from(typeIds);
      typeIds = [];
      return arrow.makeData({
        ...{ type, length: ids.length, nullCount: 0, typeIds: ids },
        children: members.map((member) => member.finish()),
      } as never);
    },
  };
}

/** Reads maps, which DuckDB holds as lists of structs of a key and a value. */
function maps(key: ColumnReader, value: ColumnReader): ColumnReader {
  const entries = structs(["key", "value"], [key, value]);
  // Arrow has neither null entries nor null keys.
  const entryType = new arrow.Struct([new arrow.Field("key", key.type, false), field("value", value.type)]);
  return lists(() => new arrow.Map_(new arrow.Field("entries", entryType, false) as never), entries);
}

function nulls(): ColumnReader {
  let length = 0;
  const type = new arrow.Null();
  return {
    type,
    open: (vector) => ({ vector, data: new DataView(new ArrayBuffer(0)), validity: null, children: [] }),
    append(_source, _from, count) {
      length += count;
    },
    finish() {
      const data = arrow.makeData({ type, length, nullCount: length } as never);
      length = 0;
      return data;
    },
  };
}

function field(name: string, type: arrow.DataType): arrow.Field {
  return new arrow.Field(name, type, true);
}

const copied = (bytes: number) => ({ from: bytes });
const INFINITE_DAYS = 0x7fff_ffff;
const INFINITE_TIME = 2n ** 63n - 1n;
const MOST_OF_38_DIGITS = 10n ** 38n - 1n;

function dates(): ColumnReader {
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

function times(type: arrow.DataType, what: string): ColumnReader {
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
function hugeIntegers(signed: boolean): ColumnReader {
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

function decimals(type: duckdb.LogicalType): ColumnReader {
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
function intervals(): ColumnReader {
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

function booleans(): ColumnReader {
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

function enums(type: duckdb.LogicalType): ColumnReader {
  const internal = duckdb.enum_internal_type(type);
  const size = internal === Type.UTINYINT ? 1 : internal === Type.USMALLINT ? 2 : 4;
  const names = Array.from({ length: duckdb.enum_dictionary_size(type) }, (_, i) =>
    duckdb.enum_dictionary_value(type, i),
  );
  const index = ({ data }: Source, i: number) =>
    size === 1 ? data.getUint8(i) : size === 2 ? data.getUint16(2 * i, true) : data.getUint32(4 * i, true);
  return strings(new arrow.Utf8(), (source, i) => names[index(source, i)] as string, size);
}

/** Returns the reader of a column of a result. @throws Error for a type that Arrow does not have */
export function columnReader(name: string, type: duckdb.LogicalType): ColumnReader {
  const child = (member: duckdb.LogicalType) => columnReader(name, member);
  switch (duckdb.get_type_id(type)) {
    case Type.BOOLEAN:
      return booleans();
    case Type.TINYINT:
      return fixed(new arrow.Int8(), copied(1), (b) => new Int8Array(b));
    case Type.SMALLINT:
      return fixed(new arrow.Int16(), copied(2), (b) => new Int16Array(b));
    case Type.INTEGER:
      return fixed(new arrow.Int32(), copied(4), (b) => new Int32Array(b));
    case Type.BIGINT:
      return fixed(new arrow.Int64(), copied(8), (b) => new BigInt64Array(b));
    case Type.UTINYINT:
      return fixed(new arrow.Uint8(), copied(1), (b) => new Uint8Array(b));
    case Type.USMALLINT:
      return fixed(new arrow.Uint16(), copied(2), (b) => new Uint16Array(b));
    case Type.UINTEGER:
      return fixed(new arrow.Uint32(), copied(4), (b) => new Uint32Array(b));
    case Type.UBIGINT:
      return fixed(new arrow.Uint64(), copied(8), (b) => new BigUint64Array(b));
    case Type.HUGEINT:
      return hugeIntegers(true);
    case Type.UHUGEINT:
      return hugeIntegers(false);
    case Type.FLOAT:
      return fixed(new arrow.Float32(), copied(4), (b) => new Float32Array(b));
    case Type.DOUBLE:
      return fixed(new arrow.Float64(), copied(8), (b) => new Float64Array(b));
    case Type.DECIMAL:
      return decimals(type);
    case Type.VARCHAR:
      return strings(new arrow.Utf8());
    case Type.BLOB:
      return strings(new arrow.Binary());
    case Type.DATE:
      return dates();
    case Type.TIME:
      return times(new arrow.TimeMicrosecond(), "time");
    case Type.TIME_NS:
      return times(new arrow.TimeNanosecond(), "time");
    case Type.TIMESTAMP_S:
      return times(new arrow.TimestampSecond(), "timestamp");
    case Type.TIMESTAMP_MS:
      return times(new arrow.TimestampMillisecond(), "timestamp");
    case Type.TIMESTAMP:
      return times(new arrow.TimestampMicrosecond(), "timestamp");
    case Type.TIMESTAMP_NS:
      return times(new arrow.TimestampNanosecond(), "timestamp");
    case Type.TIMESTAMP_TZ:
      return times(new arrow.TimestampMicrosecond("UTC"), "timestamp");
    case Type.TIME_TZ:
      return strings(new arrow.Utf8(), ({ data }, i) => timeWithZoneText(data.getBigUint64(8 * i, true)), 8);
    case Type.INTERVAL:
      return intervals();
    case Type.UUID:
      return strings(new arrow.Utf8(), ({ data }, i) => uuidText(data, 16 * i));
    case Type.BIT:
      return strings(new arrow.Utf8(), ({ data }, i) => bitText(stringBytes(data, 16 * i)));
    case Type.ENUM:
      return enums(type);
    case Type.LIST:
      return lists((item) => new arrow.List(field("item", item)), child(duckdb.list_type_child_type(type)));
    case Type.ARRAY:
      return arrays(child(duckdb.array_type_child_type(type)), duckdb.array_type_array_size(type));
    case Type.MAP:
      return maps(child(duckdb.map_type_key_type(type)), child(duckdb.map_type_value_type(type)));
    case Type.STRUCT: {
      const count = duckdb.struct_type_child_count(type);
      const indices = Array.from({ length: count }, (_, i) => i);
      return structs(
        indices.map((i) => duckdb.struct_type_child_name(type, i)),
        indices.map((i) => child(duckdb.struct_type_child_type(type, i))),
      );
    }
    case Type.UNION: {
      const indices = Array.from({ length: duckdb.union_type_member_count(type) }, (_, i) => i);
      return unions(
        indices.map((i) => duckdb.union_type_member_name(type, i)),
        indices.map((i) => child(duckdb.union_type_member_type(type, i))),
      );
    }
    case Type.SQLNULL:
    // The type of a parameter that the statement does not tell.
    case Type.INVALID:
      return nulls();
    default: {
      const typeName = Type[duckdb.get_type_id(type)];
      throw new Error(
        `column "${name}" has the type ${typeName}, which Arrow does not have; cast it to VARCHAR`,
      );
    }
  }
}
