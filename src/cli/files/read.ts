import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { RecordBatch, RecordBatchReader } from "apache-arrow";
import { isIpcFile } from "../../arrow/ipc-forms.ts";
import { CONTINUATION } from "../../arrow/message.ts";
import { toIpcStream } from "../../arrow/to-stream.ts";
import { toIpcStream as encodeRows } from "../../client/arrow-input.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { FileFormat } from "./formats.ts";

/** Rows of a file. */
export interface FileRows {
  /** An Arrow IPC stream. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Amount of rows, in `unit`s. */
  readonly total: number;
  readonly unit: "bytes" | "rows";
}

const CHUNK_BYTES = 256 * 1024;
const HEAD_BYTES = 8;

/**
 * Opens a file of rows. It reads piece by piece, and passes Arrow's messages unchanged.
 *
 * @param advanced called with the amount that was handed over.
 * @throws LanceError InvalidInput, if the file is not of the format, and Error if it cannot be read.
 */
export async function openRows(
  file: string,
  format: FileFormat,
  advanced: (amount: number) => void,
): Promise<FileRows> {
  if (format === "parquet") {
    await sizeOf(file);
    const { openParquet } = await import("./parquet.ts");
    const { rows, bytes } = await openParquet(file, advanced);
    return { bytes, total: rows, unit: "rows" };
  }
  const total = await sizeOf(file);
  await checkArrow(file, format);
  return { bytes: arrowStream(file, total, advanced), total, unit: "bytes" };
}

/** The first bytes distinguish a file from a stream. */
async function checkArrow(file: string, format: FileFormat): Promise<void> {
  await using handle = await open(file);
  const head = Buffer.alloc(HEAD_BYTES);
  await handle.read(head, 0, head.length, 0);
  if (isIpcFile(head) || format === "arrows" || head.readUInt32LE(0) === CONTINUATION) return;
  throw new LanceError("InvalidInput", `${file} is no Arrow IPC file`);
}

async function sizeOf(file: string): Promise<number> {
  try {
    await using handle = await open(file);
    const stat = await handle.stat();
    if (!stat.isFile()) throw new Error("it is no file");
    return stat.size;
  } catch (cause) {
    throw new Error(`${file} cannot be read: ${(cause as Error).message.split(",")[0]}`, { cause });
  }
}

async function* arrowStream(
  file: string,
  size: number,
  advanced: (amount: number) => void,
): AsyncIterable<Uint8Array> {
  const messages = toIpcStream(pieces(file, advanced))[Symbol.asyncIterator]();
  let first: IteratorResult<Uint8Array>;
  try {
    first = await messages.next();
  } catch {
    // Some writers put the schema only into the index at the end of the file.
    yield* indexedStream(file, size, advanced);
    return;
  }
  if (first.done) return;
  yield first.value;
  yield* { [Symbol.asyncIterator]: () => messages };
}

/** Reads an IPC file by its index, batch by batch. */
async function* indexedStream(
  file: string,
  size: number,
  advanced: (amount: number) => void,
): AsyncIterable<Uint8Array> {
  const { RecordBatchReader, Table } = await import("apache-arrow");
  await using handle = await open(file);
  const reader = await indexReader(RecordBatchReader, handle);
  if (reader === undefined) {
    throw new LanceError(
      "InvalidInput",
      `${file} has been cut off: an Arrow IPC file has its index at the end`,
    );
  }
  const { numRecordBatches, schema } = reader;
  async function* batches() {
    for await (const batch of reader as AsyncIterable<RecordBatch>) {
      yield batch;
      advanced(size / numRecordBatches);
    }
  }
  yield* encodeRows(numRecordBatches === 0 ? new Table(schema) : batches());
}

async function indexReader(library: typeof RecordBatchReader, handle: FileHandle) {
  try {
    const reader = await (await library.from(handle)).open();
    return reader.isFile() ? reader : undefined;
  } catch {
    return undefined;
  }
}

async function* pieces(file: string, advanced: (amount: number) => void): AsyncIterable<Uint8Array> {
  for await (const piece of createReadStream(file, { highWaterMark: CHUNK_BYTES })) {
    yield piece as Uint8Array;
    advanced((piece as Uint8Array).byteLength);
  }
}
