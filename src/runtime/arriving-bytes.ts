import { freeAtOnce } from "./free-at-once.ts";

const NOTHING: Buffer = Buffer.alloc(0);

/** Least memory that is allocated for bytes in several pieces. */
const LEAST_BYTES = 1024;

/**
 * Bytes that arrive in pieces. Each piece that is kept takes 400 bytes of memory beside its own, so that a client could fill the memory by
 * pieces of a byte. A single piece is kept as it is; of several, the bytes are copied. What {@link whole} returned is not to be read after the
 * next piece.
 */
export class ArrivingBytes {
  #bytes = NOTHING;
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
