import type { Call } from "../../namespace/call.ts";
import type { ClientBinding } from "../../transcode/client-binding.ts";
import type { UpstreamResponse } from "./transport.ts";

/** Headers of an answer that say which bytes it has, and of which version. */
const TOLD = ["accept-ranges", "content-range", "x-lancedb-version"];

/** Media type of bytes that have no other. */
export const BYTES = "application/octet-stream";

/** Whether a method answers with plain bytes, of which a request may name a range: a download that is a GET. */
export function readsBytes({ httpMethod, responseBody }: ClientBinding): boolean {
  return httpMethod === "GET" && responseBody === "raw";
}

/** Returns the header that names the range, name and value in turn; none if the client wants all bytes. */
export function rangeHeader({ headers }: Call): readonly string[] {
  const range = headers["range"];
  return range === undefined ? [] : ["range", range];
}

/** Passes on which bytes an answer has; the wire derives the status from it. */
export function tellRange({ headers }: UpstreamResponse, call: Call): void {
  for (const name of TOLD) {
    const value = headers[name];
    if (typeof value === "string") call.responseHeaders[name] = value;
  }
  const length = Number(headers["content-length"]);
  if (Number.isSafeInteger(length)) call.responseBytes = length;
}
