/** Cuts bytes, as they arrive, into pieces of equal size; the last may be shorter. */
export async function* inPieces(
  bytes: AsyncIterable<Uint8Array>,
  size: number,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, undefined> {
  let held: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of bytes) {
    signal?.throwIfAborted();
    held.push(chunk);
    length += chunk.byteLength;
    if (length < size) continue;
    const whole = Buffer.concat(held);
    let at = 0;
    for (; length - at >= size; at += size) yield whole.subarray(at, at + size);
    held = [whole.subarray(at)];
    length -= at;
  }
  if (length > 0) yield Buffer.concat(held);
}
