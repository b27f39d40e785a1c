import { ArrivingBytes } from "../../runtime/arriving-bytes.ts";

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
  let waiting = new ArrivingBytes();
  for await (const piece of data) {
    for (let start = 0; start < piece.length; ) {
      const part = piece.subarray(start, start + MESSAGE_BYTES - waiting.size);
      start += part.length;
      waiting.push(part);
      if (waiting.size < MESSAGE_BYTES) continue;
      yield waiting.whole();
      waiting = new ArrivingBytes();
    }
  }
  if (waiting.size > 0) yield waiting.whole();
}
