import { LanceError } from "../namespace/errors.ts";

/** The bounds on bodies that the pipeline keeps, whichever wire they come by. */
export interface BodyLimits {
  /** The largest Arrow body of one call, in bytes after decompression of the transfer. */
  readonly maxUploadBytes: number;
  /** How many bytes of Arrow bodies all running calls may hold together. */
  readonly maxBufferedBytes: number;
}

/** Counts the bytes of bodies that are held in memory, over all calls. */
export interface ByteBudget {
  /**
   * Passes chunks on and counts them until `release` is called, for some bytes or, without a number, for all.
   *
   * The iterable throws LanceError PayloadTooLarge past the limit of one call, and Throttling when the calls
   * that run together have used up the budget.
   */
  admit(chunks: AsyncIterable<Uint8Array>): {
    data: AsyncIterable<Uint8Array>;
    release(bytes?: number): void;
  };
  /** The bytes held now. */
  readonly held: number;
}

/** Creates the budget that the calls of one process share. */
export function createByteBudget(limits: BodyLimits): ByteBudget {
  let held = 0;
  return {
    get held() {
      return held;
    },
    admit(chunks) {
      let [own, passed] = [0, 0];
      async function* counted() {
        for await (const chunk of chunks) {
          if (passed + chunk.byteLength > limits.maxUploadBytes) {
            throw new LanceError("PayloadTooLarge", `body is larger than ${limits.maxUploadBytes} bytes`);
          }
          if (held + chunk.byteLength > limits.maxBufferedBytes) {
            throw new LanceError(
              "Throttling",
              "the bodies of running calls use all memory set aside for them",
              {
                headers: { "retry-after": "1" },
              },
            );
          }
          passed += chunk.byteLength;
          own += chunk.byteLength;
          held += chunk.byteLength;
          yield chunk;
        }
      }
      return {
        data: counted(),
        release(bytes = own) {
          const released = Math.min(bytes, own);
          held -= released;
          own -= released;
        },
      };
    },
  };
}
