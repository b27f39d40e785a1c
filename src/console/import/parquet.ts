import type { DataType, RecordBatch, Schema } from "apache-arrow";
import * as arrow from "apache-arrow";
import { gunzipSync } from "fflate";
import { decompress as unzstd } from "fzstd";
import { type AsyncBuffer, type Compressors, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { toIpcStream } from "../../client/rows/arrow-input.ts";
import { batchOf } from "../../client/rows/batches.ts";
import { arrowSchemaOf, withoutDecimals } from "./parquet-schema.ts";

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
