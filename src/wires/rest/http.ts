import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { FastifyError } from "fastify";
import { LanceError, problemOf, toLanceError } from "../../namespace/errors.ts";
import type { PacedExchange } from "../../runtime/loop-pace.ts";

/** A request of either version of HTTP. */
export type RestRequest = IncomingMessage | Http2ServerRequest;

/** Response to a {@link RestRequest}. */
export type RestResponse = ServerResponse | Http2ServerResponse;

/** Whether a response belongs to a stream of HTTP/2. The version takes less time to read than the chain of prototypes. */
export function isHttp2(response: RestResponse): response is Http2ServerResponse {
  return isHttp2Request(response.req);
}

/** Whether a request belongs to a stream of HTTP/2. */
export function isHttp2Request(request: RestRequest): request is Http2ServerRequest {
  return request.httpVersionMajor === 2;
}

/** Whether nothing more of a response can be sent. */
export function isGone(response: RestResponse): boolean {
  return isHttp2(response) ? response.stream.destroyed || response.stream.closed : response.destroyed;
}

/** Returns the identity of a response's connection; undefined after it has ended. */
export function connectionOf(response: RestResponse): object | undefined {
  return isHttp2(response) ? response.stream.session : response.req.socket;
}

/** Returns the exchange of a response for work that waits for a turn of the event loop. */
export function exchangeOf(response: RestResponse): PacedExchange {
  return {
    connection: connectionOf(response),
    get done() {
      return isGone(response);
    },
  };
}

/** Returns the host and port of a request, if it names them; HTTP/2 has them in a header of its own. */
export function hostOf(headers: IncomingHttpHeaders): string | undefined {
  return (headers[":authority"] as string | undefined) ?? headers.host;
}

/** Whether a request announces a body; the body may still be empty. */
export function hasBody(request: RestRequest): boolean {
  if (isHttp2Request(request)) return !request.stream.endAfterHeaders;
  const { headers } = request;
  // A length of 0 may have several zeros.
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) !== 0;
}

/** Returns the size that a request announces for its body, in bytes; undefined if it announces none. */
export function contentLength(request: RestRequest): number | undefined {
  const header = request.headers["content-length"];
  return header === undefined ? undefined : Number(header);
}

/**
 * Whether node can tell a complete body from an interrupted one: the body has a length, to which node holds the
 * client, or the chunked coding of HTTP/1.1.
 */
export function hasKnownEnd(request: Pick<RestRequest, "httpVersionMajor" | "headers">): boolean {
  return request.httpVersionMajor === 1 || request.headers["content-length"] !== undefined;
}

/** Returns the headers of a request by lower-case name, with several values of a name joined. */
export function flattenHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const flat: Record<string, string> = Object.create(null);
  for (const name in headers) {
    const value = headers[name];
    // HTTP/2 has the request line in headers whose names begin with a colon.
    if (value === undefined || name.startsWith(":")) continue;
    flat[name] = typeof value === "string" ? value : value.join(", ");
  }
  return flat;
}

/** Splits a request's target at the query; it reduces the absolute form, which proxies use, to its path. */
export function splitTarget(target: string): { path: string; query: string } {
  const start = target.startsWith("/") ? 0 : pathStart(target);
  const mark = target.indexOf("?", start);
  if (mark === -1) return { path: target.slice(start), query: "" };
  return { path: target.slice(start, mark), query: target.slice(mark + 1) };
}

/** Returns a request's target as it is, up to the query. */
export function withoutQuery(target: string): string {
  const mark = target.indexOf("?");
  return mark === -1 ? target : target.slice(0, mark);
}

function pathStart(target: string): number {
  const authority = target.indexOf("://");
  if (authority === -1) return 0;
  const slash = target.indexOf("/", authority + 3);
  return slash === -1 ? target.length : slash;
}

/**
 * Returns the JSON of an error. It has both shapes that clients know: the public API's `error` and `code`, and the
 * `type`, `title`, `status`, `detail` and `instance` of RFC 9457. `kind` is the name of the row of the error table.
 *
 * @param status HTTP status of the answer.
 * @param path path of the request's resource.
 */
export function errorText(error: LanceError, status: number, path: string): string {
  const { code, kind, message, detail = "" } = error;
  const { type, title } = problemOf(kind, status);
  return JSON.stringify({ error: message, code, kind, type, title, status, detail, instance: path });
}

/**
 * Returns the row of the error table for a thrown value: the faults that Fastify finds in a request are the client's.
 */
export function knownError(thrown: unknown): LanceError {
  const { code = "", statusCode = 0 } = (thrown ?? {}) as Partial<FastifyError>;
  if (!/^FST_ERR_/.test(code) || statusCode < 400 || statusCode >= 500) return toLanceError(thrown);
  const name = statusCode === 415 ? "UnsupportedMediaType" : "InvalidInput";
  const message =
    code === "FST_ERR_BAD_URL" ? "the path must be percent-encoded UTF-8" : (thrown as Error).message;
  return new LanceError(name, message, { cause: thrown });
}

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
