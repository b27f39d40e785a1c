import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { toIpcFile } from "../../arrow/file.ts";
import { toIpcStream } from "../../arrow/to-stream.ts";
import type { FileFormat } from "./formats.ts";

/** How an answer, an Arrow IPC stream or file, becomes a file of a format. */
const ENCODERS: Readonly<
  Record<FileFormat, (answer: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>>
> = {
  arrow: toIpcFile,
  arrows: toIpcStream,
  async *parquet(answer) {
    const { toParquet } = await import("./parquet.ts");
    yield* toParquet(toIpcStream(answer));
  },
};

/**
 * Writes an answer into a file, which appears when it is whole: until then its rows are in a file beside it, which
 * goes away if they do not all come.
 *
 * @param advanced is told of the bytes that have been written.
 * @throws Error with one clear line, when the file cannot be written, and whatever the answer throws.
 */
export async function writeRows(
  file: string,
  format: FileFormat,
  answer: AsyncIterable<Uint8Array>,
  advanced: (bytes: number) => void,
): Promise<void> {
  const part = `${file}.${randomBytes(4).toString("hex")}.part`;
  const handle = await opened(part, file);
  try {
    try {
      for await (const piece of ENCODERS[format](answer)) {
        await writeAll(handle, piece);
        advanced(piece.byteLength);
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

async function opened(part: string, file: string): Promise<FileHandle> {
  try {
    return await open(part, "wx");
  } catch (cause) {
    throw new Error(`${file} cannot be written: ${(cause as Error).message.split(",")[0]}`, { cause });
  }
}

async function writeAll(handle: FileHandle, piece: Uint8Array): Promise<void> {
  for (let at = 0; at < piece.byteLength; ) at += (await handle.write(piece, at)).bytesWritten;
}
