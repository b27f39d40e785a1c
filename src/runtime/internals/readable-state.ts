import type { Readable } from "node:stream";

/** The part of Node's readable streams that holds what waits for a reader. */
interface ReadableState {
  readonly _readableState: {
    readonly buffer: readonly unknown[];
    /** Number of entries of the buffer that have been read. */
    readonly bufferIndex: number;
    highWaterMark: number;
  };
}

const stateOf = (stream: Readable) => (stream as Readable & ReadableState)._readableState;

/** Returns how many pieces of a stream wait for its reader. */
export function waitingPieces(stream: Readable): number {
  const { buffer, bufferIndex } = stateOf(stream);
  return buffer.length - bufferIndex;
}

/** Limits the messages that a stream of objects reads ahead of its reader, where its maker has no option for it. */
export function limitReadAhead(stream: Readable, messages: number): void {
  stateOf(stream).highWaterMark = messages;
}
