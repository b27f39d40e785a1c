import { gunzip, inflate, type ZlibOptions } from "node:zlib";

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

type Unpack = (
  data: Buffer,
  options: ZlibOptions,
  done: (error: Error | null, result: Buffer) => void,
) => void;

const UNPACK: Readonly<Record<string, Unpack>> = { gzip: gunzip, deflate: inflate };

/**
 * Unpacks a message.
 *
 * @throws RangeError, if it is larger than `maxBytes`; Error, for any other reason.
 */
export function unpack(message: Buffer, encoding: string, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const run = UNPACK[encoding];
    if (run === undefined) throw new Error(`the encoding ${encoding} is not known`);
    run(message, { maxOutputLength: maxBytes }, (error, result) => {
      if (error === null) resolve(result);
      else reject(error);
    });
  });
}
