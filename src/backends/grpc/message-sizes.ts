/**
 * Size of the pieces of a body in messages, in bytes: a message costs the same whatever its size, upstreams bound
 * their messages, and several messages are in transit at once.
 */
export const MESSAGE_BYTES = 512 * 1024;

/**
 * Passes a body on in pieces of {@link MESSAGE_BYTES}, except for the last: it joins small pieces and cuts large
 * ones.
 */
export async function* inMessageSizes(data: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of data) {
    for (let start = 0; start < piece.length; ) {
      const part = piece.subarray(start, start + MESSAGE_BYTES - bytes);
      start += part.length;
      bytes += part.length;
      waiting.push(part);
      if (bytes < MESSAGE_BYTES) continue;
      yield joined(waiting);
      waiting = [];
      bytes = 0;
    }
  }
  if (bytes > 0) yield joined(waiting);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
}
