import { once } from "node:events";
import { type AddressInfo, createServer, type LookupFunction, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { LateSignal } from "../../../runtime/late-signal.ts";
import type { HttpTransportOptions } from "../options.ts";
import { UpstreamFailure, type UpstreamRequest } from "../transport/transport.ts";
import { createHttpTransport } from "../transport/undici-transport.ts";

/** An upstream below HTTP: what it does on each connection, for each request. */
export type Act = (socket: Socket, count: number, text: string) => void;

/** Starts an upstream, and a transport to it. */
export async function upstreamOf(
  act: Act,
  options: Partial<HttpTransportOptions> = {},
  lookup?: LookupFunction,
) {
  const seen: { connections: number; requests: string[]; closed: number } = {
    connections: 0,
    requests: [],
    closed: 0,
  };
  const server = createServer((socket) => {
    seen.connections += 1;
    let text = "";
    socket.on("error", () => {});
    socket.on("close", () => {
      seen.closed += 1;
    });
    socket.on("data", (piece) => {
      text += piece.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/.exec(text)?.[1] ?? 0);
      if (end === -1 || text.length < end + 4 + length) return;
      act(socket, seen.requests.push(text), text);
      text = "";
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = lookup === undefined ? "127.0.0.1" : "catalog.test";
  const uri = `http://${host}:${(server.address() as AddressInfo).port}`;
  const transport = createHttpTransport({ uri, ...options }, lookup);
  onTestFinished(async () => {
    await transport.close();
    server.close();
  });
  const send = async (request: Partial<UpstreamRequest> = {}) => {
    const response = await transport.send({ ...REQUEST, signal: new LateSignal(), ...request });
    return `${response.status} ${response.body.toString("utf8")}`;
  };
  return { uri, transport, seen, send };
}

/** A call without its signal. */
export const REQUEST = {
  method: "POST",
  target: "/v1/table/t/describe",
  headers: ["x-request-id", "1", "content-type", "application/json"],
  body: "{}",
  streams: false,
  elapsedMs: 0,
} as const;

/** Writes an answer with a length. */
export const answer = (body: string, more = "", head = "") =>
  `HTTP/1.1 200 OK\r\n${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}${more}`;
/** Recognizes a failure of a kind. */
export const failure = (kind: string) => (error: unknown) =>
  error instanceof UpstreamFailure && error.kind === kind;
