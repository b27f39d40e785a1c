import type { DataType, Field, RecordBatch, Schema } from "apache-arrow";
import * as arrow from "apache-arrow";
import { gunzipSync } from "fflate";
import { decompress as unzstd } from "fzstd";
import {
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  type SchemaElement,
} from "hyparquet";
import { toIpcStream } from "../../client/rows/arrow-input.ts";
import { batchOf } from "../../client/rows/fitting.ts";

/** Most rows that are converted at a time. */
const BATCH_ROWS = 50_000;

/** Codecs beside Snappy, which the library has itself. */
const COMPRESSORS: Compressors = {
  GZIP: (input) => gunzipSync(input),
  ZSTD: (input) => unzstd(input),
};

/** Times as nanoseconds, so that none loses digits. */
const PARSERS = {
  timestampFromMilliseconds: (millis: bigint) => millis * 1_000_000n,
  timestampFromMicroseconds: (micros: bigint) => micros * 1_000n,
  timestampFromNanoseconds: (nanos: bigint) => nanos,
  dateFromDays: (days: number) => BigInt(days) * 86_400_000_000_000n,
};

/** The rows of a Parquet file. */
export interface ParquetRows {
  readonly schema: Schema;
  batches(): AsyncIterable<RecordBatch>;
  /** Converts the rows to an Arrow IPC stream. */
  rows(): AsyncIterable<Uint8Array>;
}

/**
 * Opens a Parquet file.
 *
 * @param onProgress called with the part that is converted, from 0 to 1
 * @param batchRows most rows of a batch
 * @throws Error for a file that is not Parquet, or has types that cannot be converted here.
 */
export async function openParquet(
  file: Blob,
  onProgress: (part: number) => void,
  batchRows = BATCH_ROWS,
): Promise<ParquetRows> {
  const buffer: AsyncBuffer = {
    byteLength: file.size,
    slice: (start, end) => file.slice(start, end).arrayBuffer(),
  };
  const found = await parquetMetadataAsync(buffer, { parsers: PARSERS });
  const schema = arrowSchemaOf(arrow, found);
  const metadata = withoutDecimals(found);
  const total = Number(metadata.num_rows);

  async function* batches(): AsyncIterable<RecordBatch> {
    const readers = schema.fields.map(({ type }) => valueReader(type));
    let groupStart = 0;
    for (const group of metadata.row_groups) {
      const groupEnd = groupStart + Number(group.num_rows);
      for (let rowStart = groupStart; rowStart < groupEnd; rowStart += batchRows) {
        const rowEnd = Math.min(rowStart + batchRows, groupEnd);
        const rows = await parquetReadObjects({
          ...{ file: buffer, metadata, rowStart, rowEnd, utf8: false },
          ...{ compressors: COMPRESSORS, parsers: PARSERS },
        });
        const columns = schema.fields.map(({ name }, at) =>
          rows.map((row) => readers[at]?.(row[name]) ?? null),
        );
        const first = rowStart;
        yield batchOf(arrow, schema, columns, (row) => `row ${first + row + 1}`);
        onProgress(rowEnd / total);
      }
      groupStart = groupEnd;
    }
  }

  return { schema, batches, rows: () => toIpcStream(total === 0 ? new arrow.Table(schema) : batches()) };
}

/** Returns a function that converts decimals, wherever they are in a value. */
function valueReader(type: DataType): (value: unknown) => unknown {
  const { DataType: Is } = arrow;
  if (Is.isDecimal(type)) {
    const words = type.bitWidth / 32;
    return (value) => (value === null || value === undefined ? null : wordsOf(unscaled(value), words));
  }
  const children = type.children ?? [];
  if (Is.isStruct(type)) {
    const members = children.map((child) => [child.name, valueReader(child.type)] as const);
    return (value) =>
      value === null || value === undefined
        ? null
        : Object.fromEntries(
            members.map(([name, read]) => [name, read((value as Readonly<Record<string, unknown>>)[name])]),
          );
  }
  if (!Is.isList(type) && !Is.isFixedSizeList(type)) return (value) => value;
  const item = valueReader(children[0]?.type as DataType);
  return (value) => (Array.isArray(value) ? value.map(item) : value);
}

/** Returns the units of a decimal: an integer, or bytes of one, the highest first. */
function unscaled(value: unknown): bigint {
  if (!(value instanceof Uint8Array)) return BigInt(value as number | bigint);
  const whole = value.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  return BigInt.asIntN(value.length * 8, whole);
}

function wordsOf(units: bigint, words: number): Uint32Array {
  return Uint32Array.from({ length: words }, (_, at) => Number((units >> BigInt(32 * at)) & 0xffffffffn));
}

type Arrow = typeof import("apache-arrow");

/** Entry in which writers of Arrow keep the schema that the rows had. */
const ARROW_SCHEMA = "ARROW:schema";

/**
 * Returns the Arrow schema of a Parquet file: the one that its writer kept, or the one that its columns have.
 *
 * @throws Error for types that cannot be converted here.
 */
function arrowSchemaOf(arrow: Arrow, metadata: FileMetaData): Schema {
  const kept = metadata.key_value_metadata?.find(({ key }) => key === ARROW_SCHEMA)?.value;
  const fields = kept === undefined ? fieldsOf(arrow, metadata.schema) : keptFields(arrow, kept);
  const odd = fields.find(({ type }) => !isConvertible(arrow, type));
  if (odd === undefined) return new arrow.Schema(fields);
  throw new Error(
    `column “${odd.name}” is ${odd.type}, which the console cannot convert; “lance-gateway import” can`,
  );
}

/** Returns the metadata with the integers, or bytes, of decimals, which the library would round to numbers. */
function withoutDecimals(metadata: FileMetaData): FileMetaData {
  return {
    ...metadata,
    schema: metadata.schema.map((element) => {
      if (!isDecimal(element)) return element;
      const { converted_type: _type, logical_type: _logical, ...plain } = element;
      return plain;
    }),
  };
}

function isDecimal({ converted_type: converted, logical_type: logical }: SchemaElement): boolean {
  return converted === "DECIMAL" || logical?.type === "DECIMAL";
}

function keptFields(arrow: Arrow, base64: string): Field[] {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const { fields } = arrow.tableFromIPC(bytes).schema;
  // Values that are kept once become values like others.
  return fields.map((field) =>
    arrow.DataType.isDictionary(field.type) ? field.clone({ type: field.type.valueType }) : field,
  );
}

function isConvertible(arrow: Arrow, type: DataType, isColumn = true): boolean {
  const { DataType: Is } = arrow;
  if (Is.isMap(type) || Is.isUnion(type) || Is.isInterval(type)) return false;
  // Values that are kept once within lists and groups would have to be kept once again.
  if (!isColumn && Is.isDictionary(type)) return false;
  return type.children?.every((child: Field) => isConvertible(arrow, child.type, false)) ?? true;
}

function fieldsOf(arrow: Arrow, [root, ...elements]: readonly SchemaElement[]): Field[] {
  if (root?.num_children !== elements.length)
    throw new Error(
      "the file has nested columns without a schema of Arrow; “lance-gateway import” can read it",
    );
  return elements.map(
    (element) =>
      new arrow.Field(element.name, typeOf(arrow, element), element.repetition_type !== "REQUIRED"),
  );
}

function typeOf(arrow: Arrow, element: SchemaElement): DataType {
  const { type, converted_type: converted, logical_type: logical } = element;
  if (isDecimal(element)) return decimalType(arrow, element);
  switch (type) {
    case "BOOLEAN":
      return new arrow.Bool();
    case "INT32":
      if (converted === "DATE" || logical?.type === "DATE") return new arrow.DateDay();
      if (converted === "TIME_MILLIS" || logical?.type === "TIME") return new arrow.TimeMillisecond();
      return isUnsigned(element, 32) ? new arrow.Uint32() : new arrow.Int32();
    case "INT64":
      if (logical?.type === "TIMESTAMP" || converted?.startsWith("TIMESTAMP"))
        return timestampType(arrow, element);
      if (logical?.type === "TIME" || converted === "TIME_MICROS") return timeType(arrow, element);
      return isUnsigned(element, 64) ? new arrow.Uint64() : new arrow.Int64();
    case "INT96":
      return new arrow.TimestampNanosecond();
    case "FLOAT":
      return new arrow.Float32();
    case "DOUBLE":
      return new arrow.Float64();
    default:
      if (logical?.type === "FLOAT16") return new arrow.Float16();
      if (logical?.type === "UUID") return new arrow.Utf8();
      return converted === "UTF8" || logical?.type === "STRING" ? new arrow.Utf8() : new arrow.Binary();
  }
}

function decimalType(
  arrow: Arrow,
  { precision = 38, scale = 0, logical_type: logical }: SchemaElement,
): DataType {
  const digits = logical?.type === "DECIMAL" ? logical.precision : precision;
  const after = logical?.type === "DECIMAL" ? logical.scale : scale;
  return new arrow.Decimal(after, digits, digits <= 38 ? 128 : 256);
}

function isUnsigned(
  { converted_type: converted, logical_type: logical }: SchemaElement,
  bits: number,
): boolean {
  if (converted === `UINT_${bits}`) return true;
  return logical?.type === "INTEGER" && logical.bitWidth === bits && !logical.isSigned;
}

const UNITS = { MILLIS: 1, MICROS: 2, NANOS: 3 } as const;

/** Times of old writers say nothing about their zone, and are in UTC. */
function timestampType(
  arrow: Arrow,
  { converted_type: converted, logical_type: logical }: SchemaElement,
): DataType {
  if (logical?.type === "TIMESTAMP")
    return new arrow.Timestamp(UNITS[logical.unit], logical.isAdjustedToUTC ? "UTC" : null);
  return new arrow.Timestamp(converted === "TIMESTAMP_MILLIS" ? UNITS.MILLIS : UNITS.MICROS, "UTC");
}

function timeType(arrow: Arrow, { logical_type: logical }: SchemaElement): DataType {
  const isNanos = logical?.type === "TIME" && logical.unit === "NANOS";
  return isNanos ? new arrow.TimeNanosecond() : new arrow.TimeMicrosecond();
}
