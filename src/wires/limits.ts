import type { ServerHttp2Stream } from "node:http2";
import { LanceError } from "../namespace/errors.ts";
import { bytesIn } from "../runtime/byte-memory.ts";

/**
 * Number of bytes of each request that no budget counts, so that small calls, including health checks, continue while
 * others have used up the memory for requests.
 */
export const FREE_BYTES = 8 * 1024;

/** Longest time for a JSON body, or a single message of the other protocols, to arrive, in milliseconds. */
export const MESSAGE_MS = 120_000;

/** Returns the error for a message that takes longer than {@link MESSAGE_MS}. */
export function lateMessage(): LanceError {
  return new LanceError(
    "DeadlineExceeded",
    `the request's message did not arrive within ${MESSAGE_MS / 1000} seconds`,
  );
}

/** Default of the longest time in which a client reads nothing of an answer, in milliseconds. */
export const DEFAULT_SILENCE_MS = 60_000;

/** Size below which a write is not awaited, in bytes: the connection's own buffers hold as much. */
const SMALL_BYTES = 16 * 1024;

/**
 * Size of a part of a large piece, in bytes, of which a client must read something in time: one that reads slowly takes longer for a
 * whole message.
 */
const PART_BYTES = 1024 * 1024;

/** Bytes by which pieces may exceed a part and are one: a message of a result has a head besides its body. */
const HEAD_BYTES = 64 * 1024;

/** Cuts pieces that are sent together into parts of {@link PART_BYTES}, of which the last may be smaller; each is a list. */
export function* partsOf(pieces: readonly Uint8Array[]): Generator<readonly Uint8Array[]> {
  if (bytesIn(pieces) <= PART_BYTES + HEAD_BYTES) return yield pieces;
  let part: Uint8Array[] = [];
  let room = PART_BYTES;
  for (const piece of pieces) {
    for (let at = 0; at < piece.byteLength; ) {
      const own = piece.subarray(at, at + room);
      part.push(own);
      at += own.byteLength;
      room -= own.byteLength;
      if (room > 0) continue;
      yield part;
      [part, room] = [[], PART_BYTES];
    }
  }
  if (part.length > 0) yield part;
}

/** Returns the error of a call whose client reads nothing of its answer for too long. */
export function stalled(milliseconds: number): LanceError {
  return new LanceError("Cancelled", `the client read nothing of the response for ${milliseconds / 1000} s`);
}

/**
 * Calls back when a stream's written data is not taken in time.
 *
 * @param milliseconds 0 for no limit
 * @returns a function that ends the watch
 */
export function onStall(milliseconds: number, callback: () => void): () => void {
  if (milliseconds === 0) return () => {};
  const timer = setTimeout(callback, milliseconds);
  return () => clearTimeout(timer);
}

/** Calls back when a stream to which everything has been written does not close in time. */
export function onStalledEnd(stream: ServerHttp2Stream, milliseconds: number, callback: () => void): void {
  if (stream.writableLength <= SMALL_BYTES) return;
  stream.on("close", onStall(milliseconds, callback));
}

/**
 * Yields the pieces of an answer, large ones in parts, and calls back if its client does not read one in time.
 *
 * @param milliseconds 0 for no limit
 * @param onSilence called then; the pieces end when the connection or the stream does
 */
export async function* takenBody(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  milliseconds: number,
  onSilence: () => void,
): AsyncGenerator<Uint8Array> {
  for await (const piece of body) {
    for (const [part] of partsOf([piece])) {
      const unwatch = onStall(milliseconds, onSilence);
      try {
        yield part as Uint8Array;
      } finally {
        unwatch();
      }
    }
  }
}
