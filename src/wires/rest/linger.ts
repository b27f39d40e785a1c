import { Http2ServerRequest } from "node:http2";
import { contentLength, hasBody, type RestRequest } from "./http.ts";

/** How many bytes of an unwanted body are read before the connection is closed. */
const MAX_DISCARDED_BYTES = 256 * 1024 * 1024;

/** How long the sender of an unwanted body has to notice the answer, in milliseconds. */
const MAX_LINGER_MS = 10_000;

/** Size up to which the rest of a body is read to its end, in bytes. */
const SMALL_BODY_BYTES = 64 * 1024;

/** Whether the rest of a body over HTTP/1.1 may be longer than what is read to keep the connection. */
export function hasLongRest(request: RestRequest): boolean {
  return bodyBytesLeft(request) > SMALL_BODY_BYTES;
}

/** Returns the largest possible rest of a body over HTTP/1.1, in bytes; Infinity if its size is unknown. */
function bodyBytesLeft(request: RestRequest): number {
  if (request instanceof Http2ServerRequest || !hasBody(request) || request.complete) return 0;
  return contentLength(request) ?? Number.POSITIVE_INFINITY;
}

/**
 * Reads and discards the rest of a body, until it ends, its sender disconnects or a bound is reached.
 *
 * @param done called once.
 */
export function discardBody(request: RestRequest, done: () => void): void {
  let left = MAX_DISCARDED_BYTES;
  const timer = setTimeout(stop, MAX_LINGER_MS);
  request.on("data", count).on("end", stop).on("close", stop);
  request.resume();

  function count(chunk: Buffer): void {
    left -= chunk.length;
    if (left < 0) stop();
  }

  function stop(): void {
    clearTimeout(timer);
    request.off("data", count).off("end", stop).off("close", stop);
    done();
  }
}
