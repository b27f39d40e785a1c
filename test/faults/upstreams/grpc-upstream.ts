import {
  constants,
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { ANSWERS, type Operation } from "./answers.ts";
import { createListener } from "./listener.ts";
import { createUpstream, type FaultyUpstream } from "./upstream.ts";

/** A received call, and the answer to it. */
export interface GrpcExchange {
  readonly stream: ServerHttp2Stream;
  /** The underlying connection. */
  readonly socket: Socket;
  readonly frames: readonly Buffer[];
  readonly upstream: FaultyUpstream;
}

/** The upstream's behaviour in place of an answer. */
export type GrpcFault = (exchange: GrpcExchange) => unknown;

const OPERATION_OF: Readonly<Record<string, Operation>> = {
  DescribeTable: "describe",
  QueryTable: "query",
  InsertIntoTable: "insert",
  CreateNamespace: "create",
};
/** `SERVING` of grpc.health.v1. */
const READY = [Buffer.from([0, 0, 0, 0, 2, 8, 1])];

/** The upstream's treatment of a connection before it reads from it. */
export type ConnectionFault = (socket: Socket) => void;

/** Starts a gRPC upstream; `onConnection` replaces HTTP/2 altogether. */
export async function startGrpcUpstream(
  fault: GrpcFault,
  once: boolean,
  onConnection?: ConnectionFault,
): Promise<FaultyUpstream> {
  const sockets = new Map<number | undefined, Socket>();
  const server = createServer();
  server.on("sessionError", () => {});
  server.on("stream", async (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on("error", () => {});
    const socket = sockets.get(stream.session?.socket.remotePort) as Socket;
    const operation = OPERATION_OF[String(headers[":path"]).split("/").at(-1) ?? ""];
    try {
      for await (const _ of stream.iterator({ destroyOnReturn: false }));
    } catch {
      return;
    }
    if (operation === undefined) return answerGrpc({ stream, socket, frames: READY, upstream });
    const { frames } = ANSWERS[operation];
    const before = upstream.add(operation);
    const act = once && before > 0 ? answerGrpc : fault;
    await act({ stream, socket, frames, upstream });
  });
  const listener = await createListener((socket) => {
    sockets.set(socket.remotePort, socket);
    if (onConnection === undefined) server.emit("connection", socket);
    else onConnection(socket);
  });
  const upstream = createUpstream(listener);
  return upstream;
}

const HEAD: OutgoingHttpHeaders = { ":status": 200, "content-type": "application/grpc" };

/** Sends the head; after the body, the stream ends with the status. */
export function beginGrpc(
  { stream }: GrpcExchange,
  trailers: OutgoingHttpHeaders = { "grpc-status": "0" },
): void {
  stream.respond(HEAD, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
}

/** Sends the regular answer. */
export function answerGrpc(exchange: GrpcExchange): void {
  beginGrpc(exchange);
  exchange.stream.end(Buffer.concat(exchange.frames));
}

/** Sends the head and the first half of the messages' bytes, without the rest. */
export function halfAnswerGrpc({ stream, frames }: GrpcExchange): void {
  stream.respond(HEAD);
  const bytes = Buffer.concat(frames);
  stream.write(bytes.subarray(0, bytes.length / 2));
}

/** Sends the messages in ten pieces, with a pause before each. */
export async function trickleGrpc(exchange: GrpcExchange, pauseMs: number): Promise<void> {
  const { stream, frames } = exchange;
  beginGrpc(exchange);
  const bytes = Buffer.concat(frames);
  const size = Math.ceil(bytes.length / 10);
  for (let start = 0; start < bytes.length && !stream.destroyed; start += size) {
    await sleep(pauseMs);
    stream.write(bytes.subarray(start, start + size));
  }
  stream.end();
}

/** Answers with a status and no message. */
export function refuseGrpc({ stream }: GrpcExchange, status: number, retryAfter: number): void {
  stream.respond(
    { ...HEAD, "grpc-status": status, "grpc-message": "not now", "retry-after": String(retryAfter) },
    { endStream: true },
  );
}

/** Sends messages of which the first has a wrong length. */
export function lieGrpc(exchange: GrpcExchange, difference: number): void {
  beginGrpc(exchange);
  const bytes = Buffer.concat(exchange.frames);
  bytes.writeUInt32BE(bytes.readUInt32BE(1) + difference, 1);
  exchange.stream.end(bytes);
}

export const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_REFUSED_STREAM } = constants;
