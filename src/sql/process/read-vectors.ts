// Reads vectors of DuckDB into columns of Arrow. A type of DuckDB has one place here: `columnReader`.
import duckdb from "@duckdb/node-bindings";
import * as arrow from "apache-arrow";
import { type ColumnReader, field } from "./column-reader.ts";
import { arrays, lists, maps, nulls, structs, unions } from "./nested-readers.ts";
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
import { bitText, timeWithZoneText, uuidText } from "./texts.ts";

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
