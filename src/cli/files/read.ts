import { createReadStream, createWriteStream, rmSync, type Stats } from "node:fs";
import { type FileHandle, mkdtemp, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { RecordBatch, RecordBatchReader, Schema } from "apache-arrow";
import { toIpcStream } from "../../arrow/ipc/file.ts";
import { isIpcFile } from "../../arrow/ipc/ipc-forms.ts";
import { CONTINUATION } from "../../arrow/ipc/message.ts";
import { toIpcStream as encodeRows } from "../../client/rows/arrow-input.ts";
import type { TextOptions } from "../../client/text/text-to-arrow.ts";
import { LanceError } from "../../namespace/errors.ts";
import { type FileFormat, isTextFormat, STANDARD } from "./formats.ts";

/** Rows of a file. */
export interface FileRows {
  /** An Arrow IPC stream. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Amount of rows, in `unit`s; undefined if it is unknown. */
  readonly total: number | undefined;
  readonly unit: "bytes" | "rows";
}

/** Options of {@link openRows}. */
export interface InputOptions {
  readonly format: FileFormat;
  /** Schema of the table to which the rows go. Default: the rows decide about it. */
  readonly schema: Schema | undefined;
  /** How a text is read. */
  readonly text: Omit<TextOptions, "format" | "isForTable">;
  readonly signal: AbortSignal;
  /** Called with the amount that was handed over. */
  readonly advanced: Advanced;
}

const HEAD_BYTES = 8;

/**
 * Opens a file of rows, or standard input. It reads piece by piece, and passes Arrow's messages unchanged. Standard input that has to
 * be read twice, or from its end, is copied to a temporary file first.
 *
 * @throws LanceError InvalidInput, if the file is not of the format, and Error if it cannot be read.
 */
export async function openRows(file: string, options: InputOptions): Promise<FileRows> {
  const { format, schema, signal, advanced } = options;
  if (file !== STANDARD) return openFile(file, options);
  if (format === "arrow" || format === "arrows")
    return { bytes: toIpcStream(pieces(process.stdin, advanced)), total: undefined, unit: "bytes" };
  if (isTextFormat(format) && schema !== undefined)
    return { bytes: textRows(process.stdin, format, options), total: undefined, unit: "bytes" };
  return openFile(await spooled(process.stdin, signal), options);
}

async function openFile(file: string, options: InputOptions): Promise<FileRows> {
  const { format, schema, advanced } = options;
  const before = await statOf(file);
  const { size } = before;
  switch (format) {
    case "parquet": {
      const { openParquet } = await import("./parquet.ts");
      const { rows, bytes } = await openParquet(file, advanced);
      return { bytes, total: rows, unit: "rows" };
    }
    case "csv":
    case "tsv":
    case "jsonl":
      return {
        bytes: unlessChanged(file, before, textRows(file, format, options)),
        total: schema === undefined ? size * 2 : size,
        unit: "bytes",
      };
    default:
      await checkArrow(file, format);
      return {
        bytes: unlessChanged(file, before, arrowStream(file, size, advanced)),
        total: size,
        unit: "bytes",
      };
  }
}

/**
 * Yields the rows of a file, and fails at their end if it was changed meanwhile: they may be only a part of it, or of two files.
 *
 * @throws LanceError InvalidInput
 */
async function* unlessChanged(
  file: string,
  before: Stats,
  rows: AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  const refuseChanged = async (cause?: unknown) => {
    const after = await statOf(file);
    if (after.ino === before.ino && after.size === before.size && after.mtimeMs === before.mtimeMs) return;
    const message = `${file} was changed while it was read; import a copy of it`;
    throw new LanceError("InvalidInput", message, { cause });
  };
  try {
    yield* rows;
  } catch (error) {
    await refuseChanged(error);
    throw error;
  }
  await refuseChanged();
}

/** Converts CSV or lines of JSON. */
async function* textRows(
  source: string | NodeJS.ReadableStream,
  format: TextOptions["format"],
  { schema, text, advanced }: InputOptions,
): AsyncIterable<Uint8Array> {
  const { schemaOfText, textToArrow } = await import("../../client/text/text-to-arrow.ts");
  const open = () => pieces(source, advanced);
  const options = { ...text, format, isForTable: schema !== undefined };
  yield* textToArrow(open, schema ?? (await schemaOfText(open, options)), options);
}

/** The first bytes distinguish a file from a stream. */
async function checkArrow(file: string, format: FileFormat): Promise<void> {
  await using handle = await open(file);
  const head = Buffer.alloc(HEAD_BYTES);
  await handle.read(head, 0, head.length, 0);
  if (isIpcFile(head) || format === "arrows" || head.readUInt32LE(0) === CONTINUATION) return;
  throw new LanceError("InvalidInput", `${file} is not an Arrow IPC file`);
}

async function statOf(file: string): Promise<Stats> {
  try {
    await using handle = await open(file);
    const stat = await handle.stat();
    if (!stat.isFile()) throw new Error("it is no file");
    return stat;
  } catch (cause) {
    throw new Error(`${file} cannot be read: ${(cause as Error).message.split(",")[0]}`, { cause });
  }
}

async function* arrowStream(file: string, size: number, advanced: Advanced): AsyncIterable<Uint8Array> {
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
async function* indexedStream(file: string, size: number, advanced: Advanced): AsyncIterable<Uint8Array> {
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

const CHUNK_BYTES = 256 * 1024;

/** Called with the number of bytes that were read. */
type Advanced = (bytes: number) => void;

/** Reads a file, or standard input, piece by piece. */
async function* pieces(
  source: string | NodeJS.ReadableStream,
  advanced: Advanced,
): AsyncIterable<Uint8Array> {
  const stream =
    typeof source === "string" ? createReadStream(source, { highWaterMark: CHUNK_BYTES }) : source;
  for await (const piece of stream) {
    yield piece as Uint8Array;
    advanced((piece as Uint8Array).byteLength);
  }
}

/** Copies standard input to a file that the end of the process removes, for formats that are read twice or from their end. */
async function spooled(input: NodeJS.ReadableStream, signal: AbortSignal): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "input");
  await pipeline(input, createWriteStream(file, { mode: 0o600 }), { signal }).catch((cause: Error) => {
    if (signal.aborted) throw cause;
    const reason = cause.message.split(",")[0];
    throw new Error(`standard input cannot be copied to ${folder}: ${reason}`, { cause });
  });
  return file;
}
