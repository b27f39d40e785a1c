import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import type { LanceError } from "../../namespace/errors.ts";
import { onStall, partsOf, stalled } from "../limits.ts";
import { isGone, isHttp2, type RestResponse } from "./http.ts";

/** Size of pieces, in bytes, up to which they leave in one packet with what follows: the next piece, or the end of the answer. */
const SMALL_PIECE_BYTES = 64 * 1024;

/** Writes the body of an answer piece by piece, and frees the memory of each piece as early as it can. */
export class BodyWriter {
  readonly #response: RestResponse;
  readonly #silenceMs: number;
  readonly #onSilence: (error: LanceError) => void;
  /** Number of bytes that were written without a wait for the system. */
  #waiting = 0;

  /**
   * @param silenceMs longest time in which a client of HTTP/2 reads nothing of a part of a piece, in milliseconds; 0 for
   *   no limit.
   * @param onSilence called then.
   */
  constructor(response: RestResponse, silenceMs: number, onSilence: (error: LanceError) => void) {
    this.#response = response;
    this.#silenceMs = silenceMs;
    this.#onSilence = onSilence;
  }

  /**
   * Sends a piece of the body. Resolves when the system has taken it, so that its memory is no longer in use, or when
   * the client has disconnected; it does not wait for small pieces, of which it keeps copies.
   */
  async write(piece: Uint8Array): Promise<void> {
    const response: Writable = this.#response as ServerResponse;
    if (this.#waiting + piece.byteLength <= SMALL_PIECE_BYTES) {
      this.#waiting += piece.byteLength;
      response.write(Buffer.from(piece));
      return;
    }
    this.#waiting = 0;
    if (!isHttp2(this.#response)) return this.#untilTaken(piece);
    for (const [part] of partsOf([piece])) {
      // The client may have disconnected since the part before.
      if (!isGone(this.#response)) await this.#untilTaken(part as Uint8Array);
    }
  }

  async #untilTaken(piece: Uint8Array): Promise<void> {
    const response: Writable = this.#response as ServerResponse;
    await new Promise<void>((resolve) => {
      const unwatch = isHttp2(this.#response)
        ? onStall(this.#silenceMs, () => this.#onSilence(stalled(this.#silenceMs)))
        : undefined;
      const resume = () => {
        unwatch?.();
        response.off("close", resume);
        resolve();
      };
      response.on("close", resume);
      response.write(piece, (error) => error ?? resume());
    });
  }
}
