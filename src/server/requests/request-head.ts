import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { databaseOfRegion } from "../../namespace/call/database-context.ts";
import { LanceError } from "../../namespace/errors.ts";
import { setAddress } from "../../wires/arrival.ts";
import { hostOf } from "../../wires/rest/http.ts";

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

/** The parts of a request's address that name a database. */
export interface Addressing {
  /** Prefix of the name of a database in a path, for example `/db`. Default: paths name none. */
  readonly pathPrefix?: string | undefined;
  /** Hosts that name databases; `*.example.com` is any host below it. Default: hosts name none. */
  readonly hosts?: readonly string[] | undefined;
}

/**
 * Extracts the database from the address of a request, and keeps it beside the headers, where all wires find it and
 * no client can write it.
 *
 * @returns the target without the database.
 */
export type TakeAddress = (target: string, headers: IncomingHttpHeaders) => string;

/** Compiles {@link TakeAddress}. Hosts of the region `local` always name a database. */
export function createTakeAddress({ pathPrefix, hosts = [] }: Addressing): TakeAddress {
  const start = pathPrefix === undefined ? undefined : `${pathPrefix}/`;

  return (target, headers) => {
    // HTTP/2 has the host in a header of its own, which overrides this one.
    const requested = hostOf(headers);
    const host = hosts.length > 0 || databaseOfRegion(requested) !== undefined ? requested : undefined;
    const end = start !== undefined && target.startsWith(start) ? target.indexOf("/", start.length) : -1;
    const database = end < 0 ? undefined : decoded(target.slice(start?.length, end));
    if (host !== undefined || database !== undefined) setAddress(headers, { host, database });
    return end < 0 ? target : target.slice(end);
  };
}

const VISIBLE = /^[!-~]+$/;

/** Decodes a segment of a path; a segment that cannot name a database stays unchanged. */
function decoded(segment: string): string {
  try {
    const name = decodeURIComponent(segment);
    return VISIBLE.test(name) ? name : segment;
  } catch {
    return segment;
  }
}
