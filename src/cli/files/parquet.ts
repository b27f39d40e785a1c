import { openAsBlob } from "node:fs";
import { joinIpcStreams, splitIpcStream } from "../../arrow/ipc/join-streams.ts";
import { loadLibrary } from "../../backends/load-library.ts";
import { LanceError } from "../../namespace/errors.ts";

/** Number of rows that are read at once. */
const BATCH_ROWS = 8192;
/** Maximum rows, and bytes, of a row group, which is in memory while it is written. */
const GROUP_ROWS = 128 * 1024;
const GROUP_BYTES = 64 * 1024 * 1024;

/** Rows as an Arrow IPC stream, and their number. */
export interface ParquetRows {
  readonly rows: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/**
 * Opens a Parquet file; it is read as its rows are requested.
 *
 * @param passed called with the number of rows that were handed over.
 * @throws LanceError InvalidInput, if the file is not Parquet.
 */
export async function openParquet(file: string, passed: (rows: number) => void): Promise<ParquetRows> {
  const { ParquetFile } = await loadParquet();
  const parquet = await ParquetFile.fromFile(await openAsBlob(file)).catch((cause: unknown) => {
    throw new LanceError("InvalidInput", `${file} is not a Parquet file: ${textOf(cause)}`, { cause });
  });
  const rows = parquet.metadata().fileMetadata().numRows();

  async function* batches() {
    // The schema precedes the rows, so that a file without rows creates a table.
    const schema = parquet.schema().intoIPCStream();
    yield () => once(schema);
    const stream = await parquet.stream({ batchSize: BATCH_ROWS });
    for await (const batch of stream) {
      const { numRows } = batch;
      const bytes: Uint8Array = batch.intoIPCStream();
      yield () => once(bytes);
      passed(numRows);
    }
  }

  async function* bytes() {
    try {
      yield* joinIpcStreams(batches());
    } catch (cause) {
      if (cause instanceof LanceError) throw cause;
      throw new LanceError("InvalidInput", `${file} cannot be read: ${textOf(cause)}`, { cause });
    }
  }

  return { rows, bytes: bytes() };
}

/**
 * Converts an Arrow IPC stream to a Parquet file, compressed with Zstandard, one row group at a time.
 *
 * @throws LanceError InvalidInput, if Parquet cannot represent the rows, and every error of the stream.
 */
export async function* toParquet(rows: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const library = await loadParquet();
  const properties = new library.WriterPropertiesBuilder()
    .setCompression(library.Compression.ZSTD)
    .setMaxRowGroupSize(GROUP_ROWS)
    .setMaxRowGroupBytes(GROUP_BYTES)
    .build();
  const streams = splitIpcStream(rows)[Symbol.asyncIterator]();
  let failure: unknown;

  async function nextTable() {
    try {
      const next = await streams.next();
      return next.done ? undefined : library.Table.fromIPCStream(next.value);
    } catch (thrown) {
      // The library converts the error to a text.
      failure = thrown;
      throw thrown;
    }
  }

  async function* batches(first: Awaited<ReturnType<typeof nextTable>>) {
    for (let table = first; table !== undefined; table = await nextTable()) {
      yield* table.recordBatches();
      table.free();
    }
  }

  try {
    const first = await nextTable();
    if (first?.numBatches === 0) yield library.writeParquet(first, properties);
    else yield* await library.transformParquetStream(ReadableStream.from(batches(first)), properties);
    if (failure !== undefined) throw failure;
  } catch (cause) {
    if (failure instanceof LanceError) throw failure;
    const text = textOf(failure ?? cause);
    throw new LanceError("InvalidInput", `the rows cannot be written as Parquet: ${text}`, { cause });
  } finally {
    await streams.return?.();
  }
}

function loadParquet() {
  return loadLibrary("a Parquet file", "parquet-wasm", () => import("parquet-wasm"));
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

function textOf(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return text.replaceAll(/\s+/g, " ");
}
