// Reads vectors of DuckDB into columns of Arrow. A type of DuckDB has one place here: `columnReader`.
import duckdb from "@duckdb/node-bindings";
import * as arrow from "apache-arrow";
import { type ColumnReader, field, isValid, openVector, type Source, Validity } from "./column-reader.ts";
import {
  booleans,
  copied,
  dates,
  decimals,
  enums,
  fixed,
  hugeIntegers,
  intervals,
  stringBytes,
  strings,
  times,
} from "./plain-readers.ts";

const { Type } = duckdb;

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

// Texts of values that Arrow has no type for, as DuckDB writes them.

/** Returns the text of a UUID, which is held as an integer of 128 bits whose first bit is inverted. */
function uuidText(data: DataView, at: number): string {
  const high = BigInt.asUintN(64, data.getBigUint64(at + 8, true) ^ (1n << 63n));
  const digits =
    high.toString(16).padStart(16, "0") + data.getBigUint64(at, true).toString(16).padStart(16, "0");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Returns the digits of bits, whose first byte is the number of bits that fill the second one up. */
function bitText(bytes: Uint8Array): string {
  const digits = Array.from(bytes.subarray(1), (byte) => byte.toString(2).padStart(8, "0")).join("");
  return digits.slice(bytes[0]);
}

/** Largest offset of a time zone, in seconds; offsets are held as their distance from it. */
const MAX_OFFSET = 16 * 60 * 60 - 1;

/** Returns the text of a time with a time zone, which is held as 40 bits of microseconds and 24 of the offset. */
function timeWithZoneText(bits: bigint): string {
  const micros = bits >> 24n;
  const offset = MAX_OFFSET - Number(bits & 0xff_ffffn);
  const fraction = (micros % 1_000_000n).toString().padStart(6, "0").replace(/0+$/, "");
  const clock = clockText(Number(micros / 1_000_000n), true);
  const zone = Math.abs(offset);
  return `${clock}${fraction === "" ? "" : `.${fraction}`}${offset < 0 ? "-" : "+"}${clockText(zone, false)}`;
}

function clockText(seconds: number, isWhole: boolean): string {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const needed = isWhole || parts[2] !== 0 ? 3 : parts[1] !== 0 ? 2 : 1;
  return parts
    .slice(0, needed)
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
}

// Readers of columns whose values have parts, and of columns without values.
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
