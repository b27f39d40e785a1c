import type { IncomingMessage } from "node:http";
import { LanceError } from "../../namespace/errors.ts";

/** Headers that say who calls. Of two of a kind, a proxy might check one, and the gateway the other. */
const CREDENTIALS = ["authorization", "x-api-key"] as const;

/**
 * Returns the error of a request that has a credential twice. Node keeps the first `authorization` and joins the values
 * of `x-api-key`, so only the list of all headers shows it.
 *
 * @param rawHeaders names and values in turn, as they were sent.
 */
export function findRepeatedCredential(rawHeaders: readonly string[]): LanceError | undefined {
  for (const name of CREDENTIALS)
    if (countHeaders(rawHeaders, name) > 1)
      return new LanceError("InvalidInput", `a request must not repeat the header ${name}`);
  return undefined;
}

/**
 * Returns the error of a request of HTTP/1.0 with a transfer encoding, which that version does not have: a proxy may pass
 * it on unread, and take the body to end elsewhere (RFC 9112, section 6.1).
 */
export function findEarlyEncoding({ headers, httpVersion }: IncomingMessage): LanceError | undefined {
  if (headers["transfer-encoding"] === undefined || httpVersion !== "1.0") return undefined;
  return new LanceError("InvalidInput", "a request of HTTP/1.0 must not have the header transfer-encoding");
}

/** Returns how often a header was sent. @param name in lower case */
function countHeaders(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const sent = rawHeaders[index] as string;
    if (sent.length === name.length && sent.toLowerCase() === name) count++;
  }
  return count;
}

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/is;
const HOST = /^(?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+,;=%-]+)?(?::\d*)?$/i;

/**
 * Reduces the target of an HTTP/1.1 request to a path, which all routes use. A target in absolute form, which clients
 * send to proxies, names the host itself and overrides the header (RFC 9112, section 3.2).
 *
 * @returns the error for a request whose host is missing, malformed or ambiguous.
 */
export function readTarget(request: IncomingMessage): LanceError | undefined {
  const { headers } = request;
  const hosts = countHeaders(request.rawHeaders, "host");
  if (hosts > 1) return new LanceError("InvalidInput", "a request must have one host header");
  if (hosts === 0 && request.httpVersion !== "1.0")
    return new LanceError("InvalidInput", "a request must have a host header");
  if (!HOST.test(headers.host ?? "")) return badHost(headers.host);
  const { url = "" } = request;
  if (url.startsWith("/")) return undefined;
  const [, host, path = ""] = ABSOLUTE.exec(url) ?? [];
  if (host === undefined) return undefined;
  if (!HOST.test(host)) return badHost(host);
  headers.host = host;
  request.url = path.startsWith("/") ? path : `/${path}`;
  return undefined;
}

function badHost(host = ""): LanceError {
  return new LanceError("InvalidInput", `${JSON.stringify(host)} is not a host name`);
}
