import { Http2ServerRequest } from "node:http2";
import { contentLength, hasBody, type RestRequest } from "./http.ts";

/** How much of an unwanted body is read before the connection is closed on its sender. */
const MAX_DISCARDED_BYTES = 256 * 1024 * 1024;

/** How long a sender of an unwanted body has to notice the answer. */
const MAX_LINGER_MS = 10_000;

/** A body that is still on its way is read to its end without further ado up to this size. */
const SMALL_BODY_BYTES = 64 * 1024;

/** Whether more of a body can still come over HTTP/1.1 than is read to keep the connection. */
export function hasLongRest(request: RestRequest): boolean {
  return bodyBytesLeft(request) > SMALL_BODY_BYTES;
}

/** The most that can still come of a body over HTTP/1.1, in bytes; Infinity when its size is not known. */
function bodyBytesLeft(request: RestRequest): number {
  if (request instanceof Http2ServerRequest || !hasBody(request) || request.complete) return 0;
  return contentLength(request) ?? Number.POSITIVE_INFINITY;
}

/**
 * Reads and drops what is left of a body, until it ends, its sender hangs up or a bound is reached.
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
