import { readSync, writeSync } from "node:fs";

/** A message between the gateway and a process of the engine: a header in JSON, and bytes. */
export interface Frame<T = FrameHeader> {
  readonly header: T;
  readonly body: Uint8Array;
}

/** Header of a frame. */
export interface FrameHeader {
  readonly kind: string;
}

/** Size of the lengths in front of a frame: of all that follows, and of its header. */
export const LENGTHS_BYTES = 8;

/** File descriptor by which a process of the engine is connected. */
export const CONNECTION = 3;

const EMPTY = new Uint8Array();

/** Encodes a frame as pieces. */
export function encodeFrame(header: object, body: Uint8Array = EMPTY): Uint8Array[] {
  const text = Buffer.from(JSON.stringify(header));
  const lengths = Buffer.alloc(LENGTHS_BYTES);
  lengths.writeUInt32LE(text.byteLength + body.byteLength + 4, 0);
  lengths.writeUInt32LE(text.byteLength, 4);
  return body.byteLength === 0 ? [Buffer.concat([lengths, text])] : [Buffer.concat([lengths, text]), body];
}

/** Decodes what follows the lengths of a frame. */
export function decodeFrame<T>(content: Uint8Array, headerBytes: number): Frame<T> {
  const text = Buffer.from(content.buffer, content.byteOffset, headerBytes).toString();
  return { header: JSON.parse(text) as T, body: content.subarray(headerBytes) };
}

/** Reads the next frame, and waits for it; undefined at the end of the connection. */
export function readFrame<T>(): Frame<T> | undefined {
  const lengths = readBytes(LENGTHS_BYTES);
  if (lengths === undefined) return undefined;
  const content = readBytes(lengths.readUInt32LE(0) - 4);
  return content === undefined ? undefined : decodeFrame<T>(content, lengths.readUInt32LE(4));
}

/** Writes a frame, and waits until the gateway takes it. */
export function writeFrame(header: object, body?: Uint8Array): void {
  for (const piece of encodeFrame(header, body)) {
    for (let at = 0; at < piece.byteLength; ) at += whenReady(() => writeSync(CONNECTION, piece, at));
  }
}

function readBytes(count: number): Buffer | undefined {
  const bytes = Buffer.allocUnsafeSlow(count);
  for (let at = 0; at < count; ) {
    const read = whenReady(() => readSync(CONNECTION, bytes, at, count - at, null));
    if (read === 0) return undefined;
    at += read;
  }
  return bytes;
}

const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/** Repeats what a connection without blocking is not ready for. */
function whenReady(work: () => number): number {
  for (;;) {
    try {
      return work();
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "EAGAIN") throw thrown;
      Atomics.wait(PAUSE, 0, 0, 1);
    }
  }
}
