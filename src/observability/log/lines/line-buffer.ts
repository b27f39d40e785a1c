const FIRST_BYTES = 64 * 1024;

/** Size from which on a buffer is not kept for the next lines, in bytes. */
const LARGE_BYTES = 1024 ** 2;

/** Most bytes of a UTF-16 unit in UTF-8. */
const UNIT_BYTES = 3;

const LINE_END = "\n".charCodeAt(0);

/**
 * Lines that wait, as the bytes that a file gets. Texts that wait would be copied by the garbage collector, joined and
 * encoded into a new buffer for each write.
 */
export class LineBuffer {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;
  #lines = 0;

  /** Number of lines. */
  get lines(): number {
    return this.#lines;
  }

  /** Number of bytes, without the ends of the lines. */
  get length(): number {
    return this.#length - this.#lines;
  }

  /** Adds a line, given without its end. */
  add(line: string): void {
    const needed = this.#length + line.length * UNIT_BYTES + 1;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    this.#length += this.#bytes.write(line, this.#length);
    this.#bytes[this.#length++] = LINE_END;
    this.#lines += 1;
  }

  /** Returns the bytes of all lines; they are valid until the buffer is cleared. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Removes all lines. A buffer that has become large is given back. */
  clear(): void {
    if (this.#bytes.length > LARGE_BYTES) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
    this.#length = 0;
    this.#lines = 0;
  }
}
