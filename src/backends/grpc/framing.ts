import { createGunzip, createInflate } from "node:zlib";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";

/** Encodings of answers that an upstream may use. */
export const ACCEPTED_ENCODINGS = "identity,deflate,gzip";

const HEAD_BYTES = 5;

/** Returns a message with its prefix, in a single buffer. */
export function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, HEAD_BYTES);
  return frame;
}

/** Whether the message of a frame is packed. */
export function isPacked(frame: Buffer): boolean {
  return frame[0] === 1;
}

/** Returns the message of a frame, as it was sent. */
export function messageIn(frame: Buffer): Buffer {
  return frame.subarray(HEAD_BYTES);
}

const UNPACKERS = { gzip: createGunzip, deflate: createInflate };

/**
 * Unpacks a message, whose bytes the hold takes.
 *
 * @throws RangeError, if it is larger than `maxBytes`; the errors of the hold; Error, for any other reason.
 */
export async function unpack(
  message: Buffer,
  encoding: string,
  maxBytes: number,
  hold: Pick<ByteHold, "take">,
): Promise<Buffer> {
  if (!Object.hasOwn(UNPACKERS, encoding)) throw new Error(`the encoding ${encoding} is not known`);
  const unpacker = UNPACKERS[encoding as keyof typeof UNPACKERS]();
  const pieces: Buffer[] = [];
  let bytes = 0;
  unpacker.end(message);
  for await (const piece of unpacker as AsyncIterable<Buffer>) {
    bytes += piece.byteLength;
    if (bytes > maxBytes) throw new RangeError(`the message has more than ${maxBytes} bytes`);
    hold.take(piece.byteLength);
    pieces.push(piece);
  }
  return Buffer.concat(pieces, bytes);
}
