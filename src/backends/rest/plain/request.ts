import type { UpstreamRequest } from "../transport/transport.ts";

const TARGET = /^\/[\x21-\x7e]*$/;
const NAME = /^[!#$%&'*+.^_`|~\da-z-]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;
/** Headers that say where a message goes or ends, or what becomes of its connection. */
const FRAMING: ReadonlySet<string> = new Set([
  ...["host", "connection", "keep-alive", "proxy-connection", "content-length", "transfer-encoding"],
  ...["te", "trailer", "upgrade", "expect"],
]);
/** Names that need no look. */
const USUAL: ReadonlySet<string> = new Set([
  ...["accept", "accept-encoding", "authorization", "content-type", "user-agent"],
  ...["traceparent", "x-api-key", "x-request-id", "x-request-timeout-ms"],
]);

/**
 * Writes a request whose body is a text and whose answer is collected, in UTF-8.
 *
 * @param host value of the header, a host with its port
 * @param base prefix of the target
 * @returns undefined for any other request, and for one with headers that need a decision
 */
export function writePlainRequest(
  { method, target, headers, body = "", streams }: UpstreamRequest,
  host: string,
  base: string,
): string | undefined {
  const path = base + target;
  const isPost = method === "POST";
  if (streams || typeof body !== "string" || !TARGET.test(path)) return undefined;
  if (!isPost && (method !== "GET" || body !== "")) return undefined;
  let values = "";
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`;
  for (let at = 0; at < headers.length; at += 2) {
    const [name, value] = [headers[at] as string, headers[at + 1] as string];
    if (!USUAL.has(name) && (!NAME.test(name) || FRAMING.has(name))) return undefined;
    values += value;
    text += `${name}: ${value}\r\n`;
  }
  // A single look at all of them takes less time than a look at each.
  if (!VALUE.test(values)) return undefined;
  return isPost ? `${text}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}` : `${text}\r\n`;
}
