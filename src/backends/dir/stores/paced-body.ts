import type { Readable } from "node:stream";
import { lateError, transferMs } from "./time-limits.ts";

/**
 * Passes a body on as it arrives. A body that stops, or trickles, is destroyed and fails: no wait for bytes may exceed
 * the limit, and all of them together may exceed it only by the time that the bytes take on the slowest supported link.
 * The time between two reads does not count.
 *
 * @param limit in milliseconds
 * @throws an error with the code `ETIMEDOUT`
 */
export async function* pacedBody(body: Readable, limit: number): AsyncGenerator<Uint8Array, undefined> {
  const chunks: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]();
  let bytes = 0;
  let waited = 0;
  try {
    for (;;) {
      const start = performance.now();
      const left = Math.min(limit, limit + transferMs(bytes) - waited);
      const timer = setTimeout(() => body.destroy(lateError()), left);
      const next = await chunks.next().finally(() => clearTimeout(timer));
      if (next.done) return;
      waited += performance.now() - start;
      bytes += next.value.byteLength;
      yield next.value;
    }
  } finally {
    body.destroy();
  }
}

/** Reads a body as {@link pacedBody} does, to its end. */
export async function readPaced(body: Readable, limit: number): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(pacedBody(body, limit)));
}
