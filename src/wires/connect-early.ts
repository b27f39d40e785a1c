import type { IncomingMessage } from "node:http";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { discardBody } from "./rest/linger.ts";

/**
 * Sends the answer of a call that ends while the body of its request is still arriving over HTTP/1.1. The client gets
 * the whole answer at once, with its length; then the rest of the body is discarded, and the connection closes.
 * Closed earlier, with data of the client in transit, it would be reset and the answer could be lost.
 */
export async function earlyAnswer(
  answer: UniversalServerResponse,
  request: IncomingMessage,
): Promise<UniversalServerResponse> {
  const pieces: Uint8Array[] = [];
  for await (const piece of answer.body ?? []) pieces.push(piece);
  const whole = Buffer.concat(pieces);
  const header = new Headers(answer.header);
  header.set("content-length", String(whole.length));
  header.set("connection", "close");

  async function* body(): AsyncGenerator<Uint8Array> {
    yield whole;
    await new Promise<void>((resolve) => discardBody(request, resolve));
  }
  return { ...answer, header, body: body() };
}
