import { once } from "node:events";
import { type Agent, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { pipeline } from "node:stream/promises";

/** A request whose path is sent literally: unlike fetch, nothing normalizes or re-encodes it. */
export interface RawRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes are sent with their length, an iterable is sent chunked. */
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** Default: connections are kept. */
  readonly agent?: Agent | false;
}

/** An answer that was read to its end. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
}

/** Sends an HTTP/1.1 request and reads the answer, even an answer that comes before the body has been sent. */
export async function sendHttp(port: number, { body, ...options }: RawRequest): Promise<RawAnswer> {
  const outgoing = request({ host: "127.0.0.1", port, method: "POST", ...options });
  const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
  // A server that refuses a body may close the connection while the client still sends it.
  const sent = body !== undefined && isIterable(body) ? pipeline(body, outgoing).catch(() => {}) : undefined;
  if (sent === undefined) outgoing.end(body);
  outgoing.on("error", () => {});
  const [response] = await answered;
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  if (!response.complete) throw new Error("the answer was cut off");
  return { status: response.statusCode ?? 0, headers: response.headers, bytes: Buffer.concat(parts) };
}

/** Parses the JSON of an answer. */
export function jsonOf(answer: RawAnswer): Record<string, unknown> {
  return JSON.parse(answer.bytes.toString()) as Record<string, unknown>;
}

function isIterable(body: NonNullable<RawRequest["body"]>): body is AsyncIterable<Uint8Array> {
  return typeof body === "object" && Symbol.asyncIterator in body;
}

/** Takes a reset for no answer, because the system resets connections that wait for a worker that ends at this moment. */
export function ignoreReset(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ECONNRESET") throw error;
}
