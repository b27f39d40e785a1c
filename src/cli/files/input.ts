import { createReadStream, createWriteStream, rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";

const CHUNK_BYTES = 256 * 1024;

/** Called with the number of bytes that were read. */
export type Advanced = (bytes: number) => void;

/** Reads a file, or standard input, piece by piece. */
export async function* pieces(
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
export async function spooled(input: NodeJS.ReadableStream, signal: AbortSignal): Promise<string> {
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
