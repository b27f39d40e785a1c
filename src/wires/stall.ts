import type { ServerHttp2Stream } from "node:http2";
import { LanceError } from "../namespace/errors.ts";

/** How long a client may take nothing of an answer, in milliseconds, where no option says otherwise. */
export const DEFAULT_SILENCE_MS = 60_000;

/** What is written of fewer bytes than this is not waited for: the connection's own buffers hold as much. */
const SMALL_BYTES = 16 * 1024;

/** The error of a call whose client takes nothing of its answer for too long. */
export function stalled(milliseconds: number): LanceError {
  return new LanceError("Cancelled", `the client took nothing of the answer for ${milliseconds / 1000} s`);
}

/**
 * Calls back when what was written to a stream is not taken in time.
 *
 * @param milliseconds 0 for no limit
 * @returns what ends the watch
 */
export function onStall(milliseconds: number, callback: () => void): () => void {
  if (milliseconds === 0) return () => {};
  const timer = setTimeout(callback, milliseconds);
  return () => clearTimeout(timer);
}

/** The same for a stream to which everything has been written, until it closes. */
export function onStalledEnd(stream: ServerHttp2Stream, milliseconds: number, callback: () => void): void {
  if (stream.writableLength <= SMALL_BYTES) return;
  stream.on("close", onStall(milliseconds, callback));
}
