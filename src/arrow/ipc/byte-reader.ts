/** Reads given numbers of bytes from chunks that are split anywhere; returns fewer at the end of the input. */
export interface ByteReader extends AsyncDisposable {
  /** Returns the next bytes without consuming them. */
  peek(length: number): Promise<Uint8Array>;
  /** Returns the next bytes in one piece. */
  take(length: number): Promise<Uint8Array>;
  /** Returns the next bytes in the pieces in which they arrive. */
  pass(length: number): AsyncIterable<Uint8Array>;
  /** Returns all remaining bytes. */
  rest(): AsyncIterable<Uint8Array>;
}

/** Creates a reader. It pulls the input only as far as bytes are requested, and closes it when disposed. */
export function createByteReader(chunks: AsyncIterable<Uint8Array>): ByteReader {
  const input = chunks[Symbol.asyncIterator]();
  let pending: Uint8Array = new Uint8Array();

  async function fill(): Promise<boolean> {
    const next = await input.next();
    if (next.done) return false;
    pending = pending.byteLength === 0 ? next.value : Buffer.concat([pending, next.value]);
    return true;
  }
  async function peek(length: number): Promise<Uint8Array> {
    if (pending.byteLength < length) {
      const pieces = pending.byteLength === 0 ? [] : [pending];
      let size = pending.byteLength;
      while (size < length) {
        const next = await input.next();
        if (next.done) break;
        pieces.push(next.value);
        size += next.value.byteLength;
      }
      pending = pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces, size);
    }
    return pending.subarray(0, length);
  }
  async function* pass(length: number): AsyncIterable<Uint8Array> {
    let left = length;
    while (left > 0) {
      if (pending.byteLength === 0 && !(await fill())) return;
      const chunk = pending.subarray(0, left);
      pending = pending.subarray(chunk.byteLength);
      left -= chunk.byteLength;
      if (chunk.byteLength > 0) yield chunk;
    }
  }
  return {
    peek,
    async take(length) {
      const bytes = await peek(length);
      pending = pending.subarray(bytes.byteLength);
      return bytes;
    },
    pass,
    rest: () => pass(Number.POSITIVE_INFINITY),
    async [Symbol.asyncDispose]() {
      await input.return?.();
    },
  };
}
