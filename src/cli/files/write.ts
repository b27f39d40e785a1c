import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { toIpcFile } from "../../arrow/ipc/file.ts";
import { toIpcStream } from "../../arrow/ipc/to-stream.ts";
import { toCsv } from "../../arrow/rows/csv-rows.ts";
import { toJsonRows } from "../../arrow/rows/json-rows.ts";
import { type FileFormat, TAB } from "./formats.ts";

/** Converts an answer, an Arrow IPC stream or file, to a file of a format. */
export const ENCODERS: Readonly<
  Record<FileFormat, (answer: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>>
> = {
  arrow: toIpcFile,
  arrows: toIpcStream,
  async *parquet(answer) {
    const { toParquet } = await import("./parquet.ts");
    yield* toParquet(toIpcStream(answer));
  },
  csv: toCsv,
  tsv: (answer) => toCsv(answer, TAB),
  jsonl: (answer) => toJsonRows(answer, "lines"),
};

/**
 * Writes an answer to a file, which appears when it is complete. Until then its rows are in a temporary file beside
 * it, which is removed if the answer fails.
 *
 * @param advanced called with the number of bytes that were written.
 * @throws Error with a single line, if the file cannot be written, and every error of the answer.
 */
export async function writeRows(
  file: string,
  format: FileFormat,
  answer: AsyncIterable<Uint8Array>,
  advanced: (bytes: number) => void,
): Promise<void> {
  const part = `${file}.${randomBytes(4).toString("hex")}.part`;
  const writing = <T>(work: Promise<T>) => work.catch((cause) => refuse(file, cause));
  const handle = await writing(open(part, "wx"));
  try {
    try {
      for await (const piece of ENCODERS[format](answer)) {
        await writing(writeAll(handle, piece));
        advanced(piece.byteLength);
      }
      await writing(handle.sync());
    } finally {
      await handle.close();
    }
    await writing(rename(part, file));
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

/** @throws Error that names the file, which failures of writes to an open one do not */
function refuse(file: string, cause: Error): never {
  throw new Error(`${file} cannot be written: ${cause.message.split(",")[0]}`, { cause });
}

async function writeAll(handle: FileHandle, piece: Uint8Array): Promise<void> {
  for (let at = 0; at < piece.byteLength; ) at += (await handle.write(piece, at)).bytesWritten;
}
