import type { Server } from "node:http";
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { drainSession } from "./drain-session.ts";
import { openResponses } from "./pipelining.ts";

/**
 * Destroys HTTP/1.1 connections on which nothing moves for a while although it is the client's turn: to continue a
 * body, to read an answer, or to make another request.
 *
 * @param milliseconds 0 for no limit
 */
export function limitHttp1Silence(server: Server, milliseconds: number): void {
  server.timeout = milliseconds;
  server.on("timeout", (socket: Socket) => {
    if (isClientsTurn(socket)) socket.destroy();
    else socket.setTimeout(milliseconds);
  });
}

function isClientsTurn(socket: Socket): boolean {
  const open = openResponses(socket);
  const [oldest, newest] = [open[0], open.at(-1)];
  if (oldest === undefined || newest === undefined) return true;
  const owesBody = !newest.req.complete && newest.req.readableLength === 0;
  return owesBody || socket.writableLength > 0 || oldest.writableLength > 0;
}

/**
 * Resets a stream whose client, for a while, neither continues its request nor takes anything of an answer that was written as a
 * whole.
 */
export function limitStreamSilence(stream: ServerHttp2Stream, milliseconds: number): void {
  stream.setTimeout(milliseconds);
  stream.on("timeout", () => {
    const owesBody = stream.state.remoteClose !== 1 && stream.readableLength === 0;
    // Node ends the answer to a HEAD request before its head is sent.
    const isAnswered = stream.headersSent && stream.writableEnded;
    if (owesBody || isAnswered) stream.close(constants.NGHTTP2_CANCEL);
    else stream.setTimeout(milliseconds);
  });
}

/** When HTTP/2 sessions without a call end, in milliseconds. */
export interface SessionIdleness {
  /** From the start of the connection. */
  readonly firstCallMs: number;
  /** From the end of the last call. */
  readonly idleMs: number;
}

/** The calls of a session. */
export interface SessionCalls {
  readonly open: number;
  /** When the last call ended, or the connection began, by the monotonic clock in milliseconds; undefined while a call is open. */
  readonly idleSince: number | undefined;
  opened(stream: ServerHttp2Stream): void;
}

/**
 * Ends a session that has no calls for a while, without losing a call in transit.
 *
 * @param all counts the open calls of this session, too
 */
export function limitIdleness(
  session: ServerHttp2Session,
  { firstCallMs, idleMs }: SessionIdleness,
  all: { open: number },
): SessionCalls {
  let [open, limit, idleSince] = [0, firstCallMs, performance.now()];
  const timer = setInterval(() => {
    if (open > 0 || performance.now() - idleSince < limit) return;
    clearInterval(timer);
    drainSession(session);
  }, Math.min(firstCallMs, idleMs) / 4).unref();
  session.on("close", () => clearInterval(timer));
  const closed = () => {
    open -= 1;
    all.open -= 1;
    idleSince = performance.now();
  };
  return {
    get open() {
      return open;
    },
    get idleSince() {
      return open === 0 ? idleSince : undefined;
    },
    opened(stream) {
      open += 1;
      all.open += 1;
      limit = idleMs;
      stream.on("close", closed);
    },
  };
}
