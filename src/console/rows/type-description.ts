import { DataType, type Schema, TimeUnit } from "apache-arrow";
import { arrowTypeName, type TypeDescription, typeInWords } from "../../client/rows/type-words.ts";
import type { JsonArrowField } from "../../gen/lance/namespace/v1/schema_pb.ts";
import { LANCE_TYPE_NAMES } from "../../namespace/type-names.ts";

const UNITS: Readonly<Record<TimeUnit, string>> = {
  [TimeUnit.SECOND]: "s",
  [TimeUnit.MILLISECOND]: "ms",
  [TimeUnit.MICROSECOND]: "us",
  [TimeUnit.NANOSECOND]: "ns",
};

const LANCE_NAMES = new Map(LANCE_TYPE_NAMES);

/** Bits of a floating-point number, by its precision. */
const FLOAT_BITS = [16, 32, 64] as const;

/** Types without parameters, by the library's test for them. */
const PLAIN: readonly (readonly [name: string, isOne: (type: unknown) => boolean])[] = [
  ["null", DataType.isNull],
  ["bool", DataType.isBool],
  ["binary", DataType.isBinary],
  ["large_binary", DataType.isLargeBinary],
  ["utf8", DataType.isUtf8],
  ["large_utf8", DataType.isLargeUtf8],
  ["list", DataType.isList],
  ["struct", DataType.isStruct],
  ["map", DataType.isMap],
];

/** Names of a type for people. */
export interface TypeNames {
  /** For example `vector of 768 32-bit numbers`. */
  readonly words: string;
  /** For example `fixed_size_list<float32, 768>`. */
  readonly arrowName: string;
}

/** Returns the names of a type of rows, which are those that the schema of a table has for it. */
export function namesOf(type: DataType): TypeNames {
  const description = describeType(type);
  return { words: typeInWords(description), arrowName: arrowTypeName(description) };
}

/** Describes a type of rows as the schema of a table does. */
function describeType(type: DataType): TypeDescription {
  if (DataType.isDictionary(type)) {
    const value = describeType(type.dictionary);
    const index = describeType(type.indices).type;
    const name = value.logicalType || LANCE_NAMES.get(value.type) || value.type;
    return { ...value, logicalType: `dict:${name}:${index}:${type.isOrdered}` };
  }
  const fields = (type.children ?? []).map(
    (field) =>
      ({
        name: field.name,
        nullable: field.nullable,
        metadata: {},
        type: describeType(field.type),
      }) as JsonArrowField,
  );
  return { fields, logicalType: logicalTypeOf(type), length: lengthOf(type), type: nameOf(type) };
}

function nameOf(type: DataType): string {
  if (DataType.isInt(type)) return `${type.isSigned ? "" : "u"}int${type.bitWidth}`;
  if (DataType.isFloat(type)) return `float${FLOAT_BITS[type.precision]}`;
  if (DataType.isDecimal(type)) return `decimal${type.bitWidth}`;
  if (DataType.isDate(type)) return type.unit === 0 ? "date32" : "date64";
  if (DataType.isTime(type)) return `time${type.bitWidth}`;
  if (DataType.isTimestamp(type)) return "timestamp";
  if (DataType.isDuration(type)) return "duration";
  if (DataType.isFixedSizeBinary(type)) return "fixed_size_binary";
  if (DataType.isFixedSizeList(type)) return "fixed_size_list";
  return PLAIN.find(([, isOne]) => isOne(type))?.[0] ?? String(type).toLowerCase();
}

function logicalTypeOf(type: DataType): string | undefined {
  if (DataType.isTimestamp(type)) return `timestamp:${UNITS[type.unit]}:${type.timezone || "-"}`;
  if (DataType.isTime(type) || DataType.isDuration(type)) return `${nameOf(type)}:${UNITS[type.unit]}`;
  return undefined;
}

function lengthOf(type: DataType): bigint | undefined {
  if (DataType.isFixedSizeBinary(type)) return BigInt(type.byteWidth);
  if (DataType.isFixedSizeList(type)) return BigInt(type.listSize);
  if (DataType.isDecimal(type)) return BigInt(type.precision * 1000 + type.scale);
  return undefined;
}

type Arrow = typeof import("apache-arrow");

/** A column of a new table, as a form has it. */
export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  /** Numbers in a vector. */
  readonly dimension: number;
}

const TYPES = {
  text: (arrow: Arrow) => new arrow.Utf8(),
  integer: (arrow: Arrow) => new arrow.Int64(),
  number: (arrow: Arrow) => new arrow.Float64(),
  "true or false": (arrow: Arrow) => new arrow.Bool(),
  time: (arrow: Arrow) => new arrow.TimestampMicrosecond("UTC"),
  vector: (arrow: Arrow, dimension: number) =>
    new arrow.FixedSizeList(dimension, new arrow.Field("item", new arrow.Float32(), true)),
  bytes: (arrow: Arrow) => new arrow.Binary(),
} as const satisfies Readonly<Record<string, (arrow: Arrow, dimension: number) => DataType>>;

/** Type of a column, in a word. */
export type ColumnType = keyof typeof TYPES;

export const COLUMN_TYPES = Object.keys(TYPES) as readonly ColumnType[];

/** Returns the Arrow schema of columns. */
export function schemaOf(arrow: Arrow, columns: readonly Column[]): Schema {
  return new arrow.Schema(
    columns.map(({ name, type, dimension }) => new arrow.Field(name, TYPES[type](arrow, dimension), true)),
  );
}
