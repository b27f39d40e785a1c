import type { RecordBatch } from "apache-arrow";
import { gunzipSync } from "fflate";
import { decompress as unzstd } from "fzstd";
import { type AsyncBuffer, type Compressors, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { toIpcStream } from "../../client/arrow-input.ts";
import { batchOf } from "../../client/batches.ts";
import { arrowSchemaOf } from "./parquet-schema.ts";

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
  dateFromDays: (days: number) => days * 86_400_000,
};

/**
 * Converts a Parquet file to an Arrow IPC stream.
 *
 * @param onProgress called with the part that is done, from 0 to 1.
 * @throws Error for a file that is not Parquet, or has types that cannot be converted here.
 */
export async function* parquetToArrow(
  file: Blob,
  onProgress: (part: number) => void,
): AsyncIterable<Uint8Array> {
  const arrow = await import("apache-arrow");
  const buffer: AsyncBuffer = {
    byteLength: file.size,
    slice: (start, end) => file.slice(start, end).arrayBuffer(),
  };
  const metadata = await parquetMetadataAsync(buffer, { parsers: PARSERS });
  const schema = arrowSchemaOf(arrow, metadata);
  const total = Number(metadata.num_rows);

  async function* batches(): AsyncIterable<RecordBatch> {
    let groupStart = 0;
    for (const group of metadata.row_groups) {
      const groupEnd = groupStart + Number(group.num_rows);
      for (let rowStart = groupStart; rowStart < groupEnd; rowStart += BATCH_ROWS) {
        const rowEnd = Math.min(rowStart + BATCH_ROWS, groupEnd);
        const rows = await parquetReadObjects({
          ...{ file: buffer, metadata, rowStart, rowEnd, utf8: false },
          ...{ compressors: COMPRESSORS, parsers: PARSERS },
        });
        yield batchOf(
          arrow,
          schema,
          schema.fields.map(({ name }) => rows.map((row) => row[name] ?? null)),
        );
        onProgress(rowEnd / total);
      }
      groupStart = groupEnd;
    }
  }

  yield* toIpcStream(total === 0 ? new arrow.Table(schema) : batches());
}
