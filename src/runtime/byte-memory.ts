import { createLoopPace } from "./loop-pace.ts";

/** Least memory that is allocated for bytes in several pieces. */
const LEAST_BYTES = 1024;

/**
 * Bytes that arrive in pieces. Each piece that is kept takes 400 bytes of memory beside its own, so that a client could fill the memory by
 * pieces of a byte. A single piece is kept as it is; of several, the bytes are copied. What {@link whole} returned is not to be read after the
 * next piece.
 */
export class ArrivingBytes {
  #bytes: Buffer = Buffer.alloc(0);
  #size = 0;
  /** Whether the bytes are a copy, which nobody else has. */
  #isCopy = false;

  /** Number of bytes that have arrived. */
  get size(): number {
    return this.#size;
  }

  push(piece: Uint8Array): void {
    const size = this.#size + piece.byteLength;
    if (this.#size === 0) {
      this.#bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    } else {
      if (size > this.#bytes.length) this.#grow(size);
      this.#bytes.set(piece, this.#size);
    }
    this.#size = size;
  }

  /** Returns what has arrived, in a single piece. */
  whole(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  #grow(size: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(size, 2 * this.#bytes.length, LEAST_BYTES));
    larger.set(this.whole());
    if (this.#isCopy) freeAtOnce(this.#bytes);
    [this.#bytes, this.#isCopy] = [larger, true];
  }
}

/** Memory below this size, in bytes, is left to the collector: accounting for it would cost more. */
export const WORTH_FREEING_BYTES = 16 * 1024;

/**
 * Frees bytes that are no longer read, if they do not share their memory. Otherwise, the chunks of a long body would
 * cause one full garbage collection after the other, and the memory that growing bodies have left would stay beside
 * them, where no budget counts it.
 */
export function freeAtOnce({ buffer, byteLength }: Uint8Array): void {
  // Empty buffers are shared constants.
  const isWhole = buffer.byteLength === byteLength && byteLength > 0;
  if (isWhole && buffer instanceof ArrayBuffer && !buffer.resizable) buffer.transfer(0);
}

const frees = createLoopPace();

/** Frees much memory in its turn of the event loop: unmapping what hundreds of cut uploads have left takes longer than a turn may. */
export async function freeInTurn(free: () => void): Promise<void> {
  if (!frees.enter()) await frees.turn();
  free();
}

/** Returns the number of bytes of a body in pieces. */
export function bytesIn(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
}
