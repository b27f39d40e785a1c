import { createByteReader } from "./byte-reader.ts";
import { readMetadata } from "./file.ts";
import { isIpcFile } from "./ipc-forms.ts";
import { FILE_MAGIC, goesOn, malformed, parseMessageHead } from "./message.ts";
import { END_OF_STREAM } from "./stream.ts";

const HEAD_BYTES = 8;

/** Length of the footer's size and of the magic, at the end of a file. */
const TAIL_BYTES = 4 + FILE_MAGIC.byteLength;

/** Maximum number of bytes between the end of the messages and the footer. */
const MAX_PADDING = 64;

/**
 * Converts an Arrow IPC file, split anywhere, to an IPC stream on its way: the bytes between its magic and its footer
 * are a stream. An input that is not a file passes unchanged.
 *
 * The end of the stream follows the end of the file, so a truncated file does not become a complete stream.
 *
 * @throws LanceError InvalidInput for a malformed file, and for a file without a schema before its batches.
 */
export async function* toIpcStream(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  await using reader = createByteReader(chunks);
  if (!isIpcFile(await reader.peek(FILE_MAGIC.byteLength))) {
    yield* reader.rest();
    return;
  }
  let position = HEAD_BYTES;
  await reader.take(HEAD_BYTES);
  // Lance's engine pads the magic to more than eight bytes.
  while (isPadding(await reader.peek(HEAD_BYTES))) {
    await reader.take(HEAD_BYTES);
    position += HEAD_BYTES;
  }
  let begun = false;
  for (;;) {
    const message = await readMetadata(reader, position);
    if (message === undefined) break;
    const { kind, bodyLength } = parseMessageHead(message.metadata, position);
    if (!begun && kind !== "schema") throw malformed(position, "the file has no schema before its batches");
    begun = true;
    yield message.framed;
    let left = bodyLength;
    for await (const piece of reader.pass(bodyLength)) {
      left -= piece.byteLength;
      yield piece;
    }
    if (left > 0) throw malformed(position, "the file ends in the middle of a message");
    position += message.framed.byteLength + bodyLength;
  }
  if (!begun) throw malformed(position, "the file has no schema");
  let tail = Buffer.alloc(0);
  let restBytes = 0;
  for await (const piece of reader.rest()) {
    tail = Buffer.concat([tail, piece]).subarray(-TAIL_BYTES);
    restBytes += piece.byteLength;
  }
  if (tail.byteLength < TAIL_BYTES || !tail.subarray(4).equals(FILE_MAGIC))
    throw malformed(position, "the file ends in the middle of its footer");
  // Rows of a second file would be lost.
  if (restBytes - tail.readInt32LE(0) - TAIL_BYTES > MAX_PADDING) throw goesOn(position);
  yield END_OF_STREAM;
}

function isPadding(bytes: Uint8Array): boolean {
  return bytes.byteLength === HEAD_BYTES && bytes.every((byte) => byte === 0);
}
