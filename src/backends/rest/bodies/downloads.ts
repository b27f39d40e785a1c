import type { Call } from "../../../namespace/call/call.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { ClientBinding } from "../../../transcode/client-binding.ts";
import type { UpstreamResponse } from "../transport/transport.ts";

/** Headers of an answer that say which bytes it has, and of which version. */
const TOLD = ["accept-ranges", "content-range", "x-lancedb-version"];

/** HTTP status of an answer with a part of the bytes. */
const PARTIAL_CONTENT = 206;

/** Media type of bytes that have no other. */
export const BYTES = "application/octet-stream";

/** Whether a method answers with plain bytes, of which a request may name a range: a download that is a GET. */
export function readsBytes({ httpMethod, responseBody }: ClientBinding): boolean {
  return httpMethod === "GET" && responseBody === "raw";
}

/**
 * Returns the header that names the range, name and value in turn; none if the client wants all bytes. It wants them, too, unless a
 * condition holds, which nothing here checks; and parts of several ranges would come in a form of their own.
 */
export function rangeHeader({ headers }: Call): readonly string[] {
  const range = headers["range"];
  const isSingle = range !== undefined && !range.includes(",") && headers["if-range"] === undefined;
  return isSingle ? ["range", range] : [];
}

/**
 * Passes on which bytes an answer has; the wire derives the status from it.
 *
 * @throws LanceError ServiceUnavailable for a part that does not say which one it is: it would pass for the whole.
 */
export function tellRange({ status, headers }: UpstreamResponse, call: Call): void {
  if (status === PARTIAL_CONTENT && typeof headers["content-range"] !== "string") {
    throw new LanceError(
      "ServiceUnavailable",
      "the upstream catalog does not say which part it has answered",
    );
  }
  for (const name of TOLD) {
    const value = headers[name];
    if (typeof value === "string") call.responseHeaders[name] = value;
  }
  const length = Number(headers["content-length"]);
  if (Number.isSafeInteger(length)) call.responseBytes = length;
}
