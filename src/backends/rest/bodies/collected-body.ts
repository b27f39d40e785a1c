/** A body of several pieces, which become one as they arrive: joining 60 MB at the end would hold the event loop for 30 ms. */
export class CollectedBody {
  #memory: Buffer;
  #size = 0;

  /** @param expected size of the body in bytes, if its sender has announced it; else 0. */
  constructor(expected: number) {
    this.#memory = Buffer.allocUnsafeSlow(expected);
  }

  add(piece: Uint8Array): void {
    const size = this.#size + piece.byteLength;
    if (size > this.#memory.byteLength) {
      const larger = Buffer.allocUnsafeSlow(Math.max(size, 2 * this.#memory.byteLength));
      this.#memory.copy(larger, 0, 0, this.#size);
      this.#memory = larger;
    }
    this.#memory.set(piece, this.#size);
    this.#size = size;
  }

  /** The bytes that have arrived. */
  get bytes(): Buffer {
    return this.#memory.subarray(0, this.#size);
  }
}
