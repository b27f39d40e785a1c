import type { ByteHold } from "../namespace/byte-budget.ts";
import { LanceError } from "../namespace/errors.ts";

/** The bounds on bodies that the pipeline keeps, whichever wire they come by. */
export interface BodyLimits {
  /** The largest Arrow body of one call, in bytes after decompression of the transfer. */
  readonly maxUploadBytes: number;
}

/**
 * Passes the chunks of an Arrow body on, and takes their bytes from the call's hold before it does.
 *
 * The iterable throws LanceError PayloadTooLarge past the limit of one call, and what the hold throws.
 */
export async function* admitBody(
  chunks: AsyncIterable<Uint8Array>,
  hold: ByteHold,
  { maxUploadBytes }: BodyLimits,
): AsyncGenerator<Uint8Array> {
  let passed = 0;
  for await (const chunk of chunks) {
    passed += chunk.byteLength;
    if (passed > maxUploadBytes) {
      throw new LanceError("PayloadTooLarge", `body is larger than ${maxUploadBytes} bytes`);
    }
    hold.take(chunk.byteLength);
    yield chunk;
  }
}
