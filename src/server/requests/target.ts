import type { IncomingMessage } from "node:http";
import { LanceError } from "../../namespace/errors.ts";
import { countHeaders } from "./ambiguous-headers.ts";

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
