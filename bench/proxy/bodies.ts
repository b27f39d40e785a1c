import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const PIECE = Buffer.alloc(256 * 1024, 1);

/** Sends JSON and reads the answer to its end; returns its size in bytes. */
export async function receive(port: number, path: string, body: string): Promise<number> {
  const outgoing = begin(port, path, "application/json");
  outgoing.end(body);
  return await finish(outgoing);
}

/** Sends the given number of bytes as an Arrow stream. */
export async function upload(port: number, path: string, bytes: number): Promise<void> {
  const outgoing = begin(port, path, "application/vnd.apache.arrow.stream");
  const answered = finish(outgoing);
  await pipeline(Readable.from(pieces(bytes)), outgoing);
  await answered;
}

function begin(port: number, path: string, contentType: string) {
  const headers = { "content-type": contentType };
  return request({ host: "127.0.0.1", port, method: "POST", path, headers, agent });
}

async function finish(outgoing: ReturnType<typeof begin>): Promise<number> {
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  let size = 0;
  for await (const piece of answer) size += (piece as Buffer).byteLength;
  if (answer.statusCode !== 200) throw new Error(`the answer has status ${answer.statusCode}`);
  return size;
}

function* pieces(bytes: number): Iterable<Buffer> {
  for (let left = bytes; left > 0; left -= PIECE.byteLength) yield PIECE.subarray(0, left);
}
