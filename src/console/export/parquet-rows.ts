import * as arrow from "apache-arrow";
import { parquetWriteBuffer } from "hyparquet-writer";
import { type ItemAt, type ItemForms, itemReader } from "../../arrow/rows/row-reader.ts";

/** Entry in which writers of Arrow keep the schema that the rows had. */
const ARROW_SCHEMA = "ARROW:schema";

type SchemaElement = NonNullable<Parameters<typeof parquetWriteBuffer>[0]["schema"]>[number];

/** Length of the mark at the end of an Arrow IPC stream, in bytes. */
const END_MARK = 8;

/** Type of a column in Parquet, and how its items are converted. */
interface Plain {
  readonly element: Omit<SchemaElement, "name">;
  /** Default: items stay as they are. */
  readonly convert?: (value: never) => unknown;
}

const { DataType: Is } = arrow;

/**
 * Writes rows as a Parquet file, with the Arrow schema that they have.
 *
 * @throws Error that names the column of a type that Parquet does not get here.
 */
export function toParquet(table: arrow.Table): Uint8Array<ArrayBuffer> {
  const fields = table.schema.fields.map((field) =>
    field.clone({ type: storedType(field.type, field.name) }),
  );
  const columns = fields.map(({ name, type }, at) => {
    const column = table.getChildAt(at);
    const values: unknown[] = [];
    // The type of the column, since the stored one differs from it in its unit only.
    const own = table.schema.fields[at]?.type as arrow.DataType;
    for (const data of column?.data ?? []) {
      // An array without items may lack those inside it.
      if (data.length === 0) continue;
      const itemAt: ItemAt = itemReader(arrow, own, FORMS)(data);
      for (let row = 0; row < data.length; row++) values.push(itemAt(row));
    }
    return { name, data: values, elements: elementsOf(name, type, true) };
  });
  const file = parquetWriteBuffer({
    columnData: columns.map(({ name, data }) => ({ name, data })),
    schema: [{ name: "root", num_children: columns.length }, ...columns.flatMap(({ elements }) => elements)],
    kvMetadata: [{ key: ARROW_SCHEMA, value: base64Of(new arrow.Schema(fields, table.schema.metadata)) }],
    createdBy: "lance-gateway",
  });
  return new Uint8Array(file);
}

function base64Of(schema: arrow.Schema): string {
  const bytes = arrow.tableToIPC(new arrow.Table(schema), "stream");
  return btoa(String.fromCharCode(...bytes.subarray(0, bytes.length - END_MARK)));
}

/** Returns the type that a file has for one: values that Arrow keeps once are plain, and seconds are milliseconds. */
function storedType(type: arrow.DataType, column: string): arrow.DataType {
  if (Is.isDictionary(type)) return storedType(type.dictionary, column);
  if (Is.isTimestamp(type) && type.unit === arrow.TimeUnit.SECOND)
    return new arrow.TimestampMillisecond(type.timezone);
  const inner = (field: arrow.Field) => field.clone({ type: storedType(field.type, column) });
  const [item] = type.children ?? [];
  if (Is.isFixedSizeList(type)) return new arrow.FixedSizeList(type.listSize, inner(item as arrow.Field));
  if (Is.isList(type)) return new arrow.List(inner(item as arrow.Field));
  if (Is.isStruct(type)) return new arrow.Struct(type.children.map(inner));
  if ((type.children ?? []).length > 0 || (plainOf(type) === undefined && !Is.isNull(type)))
    throw new Error(`column “${column}” is ${type}, which this export to Parquet cannot write; Arrow can`);
  return type;
}

/** Returns the elements of a column: its own, and those inside it. */
function elementsOf(name: string, type: arrow.DataType, nullable: boolean): SchemaElement[] {
  const repetition_type = nullable ? "OPTIONAL" : "REQUIRED";
  const [item] = type.children ?? [];
  if (Is.isList(type) || Is.isFixedSizeList(type)) {
    return [
      { name, repetition_type, num_children: 1, converted_type: "LIST" },
      { name: "list", repetition_type: "REPEATED", num_children: 1 },
      ...elementsOf("element", item?.type as arrow.DataType, true),
    ];
  }
  if (Is.isStruct(type)) {
    const inside = type.children.flatMap((child) => elementsOf(child.name, child.type, true));
    return [{ name, repetition_type, num_children: type.children.length }, ...inside];
  }
  return [{ ...(plainOf(type)?.element ?? { type: "INT32" }), name, repetition_type }];
}

const FORMS: ItemForms = {
  ofType(_arrow, type) {
    const { convert = (value: unknown) => value } = plainOf(type) ?? {};
    const isRaw = Is.isTimestamp(type) || Is.isDate(type) || Is.isTime(type) || Is.isDuration(type);
    return (data) => {
      // The library rounds times to milliseconds.
      const itemAt: ItemAt = isRaw
        ? (index) => data.values[index]
        : (
            (vector) => (index: number) =>
              vector.get(index)
          )(arrow.makeVector(data));
      return (index) => (convert as (value: unknown) => unknown)(itemAt(index));
    };
  },
  ofList: (item, start, length) => Array.from({ length }, (_, at) => item(start + at)),
};

const UNITS = ["MILLIS", "MILLIS", "MICROS", "NANOS"] as const;
const DAY_MILLIS = 86_400_000n;

function plainOf(type: arrow.DataType): Plain | undefined {
  if (Is.isBool(type)) return { element: { type: "BOOLEAN" } };
  if (Is.isInt(type)) return integerOf(type);
  if (Is.isFloat(type)) return FLOATS[type.precision];
  if (Is.isUtf8(type) || Is.isLargeUtf8(type))
    return { element: { type: "BYTE_ARRAY", converted_type: "UTF8" } };
  if (Is.isBinary(type) || Is.isLargeBinary(type)) return { element: { type: "BYTE_ARRAY" } };
  if (Is.isFixedSizeBinary(type))
    return { element: { type: "FIXED_LEN_BYTE_ARRAY", type_length: type.byteWidth } };
  if (Is.isDate(type)) {
    const isDay = type.unit === arrow.DateUnit.DAY;
    return {
      element: { type: "INT32", converted_type: "DATE" },
      ...(!isDay && { convert: (millis: bigint) => Number(millis / DAY_MILLIS) }),
    };
  }
  if (Is.isTimestamp(type)) {
    const unit = UNITS[type.unit] ?? "MILLIS";
    return {
      element: { type: "INT64", logical_type: { type: "TIMESTAMP", isAdjustedToUTC: !!type.timezone, unit } },
      ...(type.unit === arrow.TimeUnit.SECOND && { convert: (seconds: bigint) => seconds * 1000n }),
    };
  }
  if (Is.isTime(type) && type.unit === arrow.TimeUnit.MILLISECOND)
    return { element: { type: "INT32", converted_type: "TIME_MILLIS" } };
  if (Is.isTime(type) && type.unit !== arrow.TimeUnit.SECOND) {
    const unit = UNITS[type.unit] ?? "MICROS";
    return { element: { type: "INT64", logical_type: { type: "TIME", isAdjustedToUTC: true, unit } } };
  }
  if (Is.isDuration(type)) return { element: { type: "INT64" } };
  if (Is.isDecimal(type)) {
    const { precision, scale, bitWidth } = type;
    return {
      element: {
        type: "FIXED_LEN_BYTE_ARRAY",
        type_length: bitWidth / 8,
        ...{ converted_type: "DECIMAL", precision, scale },
      },
      convert: unscaledOf,
    };
  }
  return undefined;
}

const FLOATS: readonly Plain[] = [
  { element: { type: "FIXED_LEN_BYTE_ARRAY", type_length: 2, logical_type: { type: "FLOAT16" } } },
  { element: { type: "FLOAT" } },
  { element: { type: "DOUBLE" } },
];

function integerOf({ bitWidth, isSigned }: arrow.Int): Plain {
  const type = bitWidth === 64 ? "INT64" : "INT32";
  const converted = `${isSigned ? "" : "U"}INT_${bitWidth}` as "INT_8" | "UINT_64";
  return { element: { type, ...((!isSigned || bitWidth < 32) && { converted_type: converted }) } };
}

/** Returns the units of a decimal, which the library has as words, the lowest first. */
function unscaledOf(words: Uint32Array): bigint {
  const whole = words.reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n);
  return BigInt.asIntN(words.length * 32, whole);
}
