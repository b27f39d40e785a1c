import { once } from "node:events";
import { createReadStream } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { pipeline } from "node:stream/promises";

/** The outcome of a request. */
export interface Outcome {
  /** Size of the answer's body, in bytes. */
  readonly bytes: number;
  /** Time from the request to the first byte of the body, in milliseconds. */
  readonly firstByteMs: number;
  readonly ms: number;
}

const agent = new Agent({ keepAlive: true });
const ARROW = "application/vnd.apache.arrow.stream";

/**
 * Sends a request and reads its answer to the end.
 *
 * @param path the path below `/v1`
 * @param body JSON, Arrow bytes, or the path of a file with Arrow bytes; without a body the request is a GET
 * @throws Error for any status but 200
 */
export async function send(
  port: number,
  path: string,
  body?: Record<string, unknown> | Buffer | string,
): Promise<Outcome> {
  const started = performance.now();
  const isArrow = typeof body === "string" || Buffer.isBuffer(body);
  const headers = { "content-type": isArrow ? ARROW : "application/json" };
  const outgoing = request({
    host: "127.0.0.1",
    port,
    method: body === undefined ? "GET" : "POST",
    path: `/v1/${path}`,
    headers,
    agent,
  });
  const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
  if (typeof body === "string") await pipeline(createReadStream(body, { highWaterMark: 2 ** 18 }), outgoing);
  else outgoing.end(isArrow || body === undefined ? body : JSON.stringify(body));
  const [answer] = await answered;
  let [bytes, firstByteMs] = [0, Number.NaN];
  for await (const chunk of answer) {
    if (bytes === 0) firstByteMs = performance.now() - started;
    bytes += (chunk as Buffer).byteLength;
  }
  if (answer.statusCode !== 200) throw new Error(`${path} was answered with ${answer.statusCode}`);
  return { bytes, firstByteMs, ms: performance.now() - started };
}
