import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { carrierOf } from "../../runtime/internals/tls-carrier.ts";
import { createLoopPace } from "../../runtime/loop-pace.ts";
import { peerOf } from "../../wires/arrival.ts";
import { type ArrivalPace, WaitingStream } from "../requests/arrival-pace.ts";
import {
  limitIdleness,
  limitStreamSilence,
  type SessionCalls,
  type SessionIdleness,
} from "./client-silence.ts";
import { drainSession, LONGEST_ROUND_TRIP_MS } from "./drain-session.ts";
import { createIdleSearch } from "./idle-search.ts";
import type { UnreadBytes, UnsentBytes } from "./pending-bytes.ts";
import { createReadingTurns } from "./reading-turns.ts";
import { countFirstResets, type ResetAllowances } from "./reset-allowance.ts";

/** Options of {@link createHttp2Sessions}. */
export interface Http2SessionsOptions {
  readonly idleness: SessionIdleness;
  /** Longest silence of a client that has to continue a body, in milliseconds; 0 for no limit. */
  readonly silenceMs: number;
  readonly streamWindowBytes: number;
  readonly sessionWindowBytes: number;
  readonly maxConcurrentStreams: number;
  /**
   * Number of open streams of which each session has an equal share. More than its share only gets a session while less
   * than half of them are open in all.
   */
  readonly maxStreams: number;
  /** Allowances of clients that reset streams. */
  readonly resets: ResetAllowances;
  readonly unread: Pick<UnreadBytes, "addStream">;
  readonly unsent: Pick<UnsentBytes, "addStream">;
  /** Lets streams begin in their turns of the event loop. */
  readonly pace: ArrivalPace;
  /** Answers a stream. */
  onStream(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    flags: number,
    rawHeaders: readonly string[],
  ): void;
  /** Called for a stream that is refused because its session has its share of streams. */
  onCrowded(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void;
  /** Called when a session breaks, or a connection ends instead of getting one. */
  onBroken(error: NodeJS.ErrnoException): void;
}

/** The open HTTP/2 connections of a port. */
export interface Http2Sessions {
  /** Notes that a connection of any protocol was accepted. */
  noteConnection(): void;
  /** Speaks HTTP/2 on a connection. */
  serve(socket: Socket): void;
  /**
   * Tells a client to go with its next call. A client that waits for an answer is not about to make a call, which it
   * would fail itself.
   *
   * @param longestMs how long calls are taken that the client sends before it knows.
   */
  leave(longestMs: number): void;
  /** Closes the session of a connection once its running calls have ended; returns false if the connection has none. */
  retire(socket: Socket): boolean;
  /** Whether a connection has a session without calls. */
  isIdle(socket: Socket): boolean;
  /** Closes a session that has been idle since before a time of the monotonic clock; returns false if there is none. */
  endIdle(before: number): boolean;
  /** Closes every session once its running calls have ended. */
  drain(): void;
  /** Cuts every session off. */
  destroy(): void;
}

/**
 * Node refuses new streams of a connection whose queues exceed this, in megabytes. Each stream waits for its reader
 * with a single message, and the number of streams is bounded, so stalled readers must not fail the others.
 */
const MAX_SESSION_MEMORY = 4096;

/** Most bytes of the headers of a stream, and 32 for each of them: as much as node takes of HTTP/1.1. */
const MAX_HEADER_BYTES = 16 * 1024;

/** How long the client of an idle session that makes room may take to go, in milliseconds. */
const LONGEST_GOODBYE_MS = 1_000;

/** Number of a connection's requests that may be reset with their first bytes before its address has fewer resets. No client does so in earnest. */
const MAX_RESET_AT_ONCE = 50;

/**
 * Connections from addresses with a broken connection begin one after the other, with this pause in milliseconds: Node hands over all
 * requests of a connection's first bytes at once, which takes up to 25 ms. Of those that wait, this many are kept, and further ones are closed.
 */
const SUSPECTS = { pauseMs: 100, most: 16 } as const;

/** Time to end a stream of a connection that has ended, in milliseconds. */
const STREAM_END_MS = 0.05;

interface OpenSession {
  readonly session: ServerHttp2Session;
  readonly calls: SessionCalls;
}

/** Creates an empty set of sessions. */
export function createHttp2Sessions(options: Http2SessionsOptions): Http2Sessions {
  const { idleness, silenceMs, sessionWindowBytes, maxConcurrentStreams, maxStreams, resets } = options;
  const { pace, unread, unsent, onStream, onCrowded, onBroken } = options;
  /** By the accepted connections. */
  const sessions = new Map<Socket, OpenSession>();
  const toldToGo = new WeakSet<ServerHttp2Session>();
  const idle = createIdleSearch<[Socket, OpenSession]>(([, { session, calls }]) =>
    toldToGo.has(session) ? undefined : calls.idleSince,
  );
  /** Open streams of all sessions. */
  const all = { open: 0 };
  let goingMs: number | undefined;

  function tellToGo(session: ServerHttp2Session, longestMs: number): void {
    toldToGo.add(session);
    drainSession(session, longestMs);
  }

  const serveStream: Http2SessionsOptions["onStream"] = (stream, ...request) => {
    unsent.addStream(stream);
    if (silenceMs > 0) limitStreamSilence(stream, silenceMs);
    onStream(stream, ...request);
  };

  const beginnings = createLoopPace();
  const readingTurns = createReadingTurns();
  /** Connections from addresses with a broken connection, the first to come first. */
  const suspects: Socket[] = [];

  function begin(socket: Socket): void {
    // Node's HTTP/2 expects a socket that ends when its peer does.
    socket.allowHalfOpen = false;
    const { peer } = peerOf(socket);
    const allowance = resets.of(peer);
    // Its session would end for the resets, after it has created their streams.
    if (countFirstResets(joinPieces(socket)) > allowance.streamResetBurst) {
      resets.noteBroken(peer);
      onBroken(Object.assign(new Error("too many resets with the first bytes"), { code: "ERR_HTTP2_ERROR" }));
      return void socket.destroy();
    }
    const session = performServerHandshake(socket, {
      ...allowance,
      maxSessionMemory: MAX_SESSION_MEMORY,
      settings: {
        initialWindowSize: options.streamWindowBytes,
        maxConcurrentStreams,
        maxHeaderListSize: MAX_HEADER_BYTES,
      },
    });
    session.setLocalWindowSize(sessionWindowBytes);
    const calls = limitIdleness(session, idleness, all);
    const carrier = carrierOf(socket);
    sessions.set(carrier, { session, calls });
    readingTurns.add(socket);
    const noteEnd = () => readingTurns.noteRead(socket, calls.open * STREAM_END_MS);
    socket.on("end", noteEnd);
    socket.on("error", noteEnd);
    let resetAtOnce = 0;
    session.on("close", () => sessions.delete(carrier));
    session.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ERR_HTTP2_ERROR") resets.noteBroken(peer);
      onBroken(error);
    });
    session.on("stream", (stream, headers, flags, rawHeaders) => {
      readingTurns.noteRead(socket);
      // A stream that was reset with its first bytes needs no answer, and has no reader for it.
      if (stream.destroyed || stream.aborted) {
        if (++resetAtOnce === MAX_RESET_AT_ONCE) resets.noteBroken(peer);
        return void stream.on("error", () => {});
      }
      if (all.open >= maxStreams / 2 && calls.open >= maxStreams / sessions.size) {
        stream.on("error", () => {});
        onCrowded(stream, headers);
        // Its client knows that nothing was done, and may call again.
        stream.close(constants.NGHTTP2_REFUSED_STREAM);
        return;
      }
      calls.opened(stream);
      unread.addStream(stream);
      if (goingMs !== undefined && !toldToGo.has(session)) tellToGo(session, goingMs);
      const target = headers[":path"] ?? "";
      if (pace.enter(target, headers["content-type"]))
        return void serveStream(stream, headers, flags, rawHeaders);
      stream.on("error", () => {});
      pace.later(target, new WaitingStream(stream), () => serveStream(stream, headers, flags, rawHeaders));
    });
  }

  /** Begins a session on a connection that has waited. */
  function beginLate(socket: Socket): void {
    if (!socket.destroyed) begin(socket);
  }

  function beginSuspect(): void {
    const socket = suspects.shift();
    if (socket !== undefined) beginLate(socket);
    if (suspects.length > 0) setTimeout(beginSuspect, SUSPECTS.pauseMs).unref();
  }

  /** Begins a session in its turn of the event loop, because Node hands over all requests of a connection's first bytes at once. */
  async function beginInTurn(socket: Socket): Promise<void> {
    // Node stops reading once it has handed the first bytes over, if they are many. Taken before, they would leave it stopped.
    await undefined;
    if (readingTurns.isOver || !beginnings.enter()) {
      do await beginnings.turn({ connection: socket, done: false });
      while (readingTurns.isOver);
    }
    beginLate(socket);
  }

  return {
    noteConnection() {
      beginnings.noteConnection();
      readingTurns.noteConnection();
    },

    serve(socket) {
      const { peer } = peerOf(socket);
      if (!resets.hasBroken(peer)) return void beginInTurn(socket);
      if (suspects.length >= SUSPECTS.most) return void socket.destroy();
      if (suspects.push(socket) === 1) setTimeout(beginSuspect, SUSPECTS.pauseMs).unref();
    },

    leave(longestMs) {
      goingMs = longestMs;
    },

    retire(socket) {
      const found = sessions.get(carrierOf(socket));
      if (found !== undefined) tellToGo(found.session, LONGEST_ROUND_TRIP_MS);
      return found !== undefined;
    },

    isIdle(socket) {
      return sessions.get(carrierOf(socket))?.calls.open === 0;
    },

    endIdle(before) {
      const found = idle.find(sessions, before);
      if (found === undefined) return false;
      const [socket, { session }] = found;
      tellToGo(session, LONGEST_ROUND_TRIP_MS);
      // Its client may keep its side of the connection open.
      setTimeout(() => socket.destroy(), LONGEST_GOODBYE_MS).unref();
      return true;
    },

    drain() {
      for (const { session } of sessions.values()) tellToGo(session, LONGEST_ROUND_TRIP_MS);
    },

    destroy() {
      for (const { session } of sessions.values()) session.destroy(undefined, constants.NGHTTP2_CANCEL);
    },
  };
}

/** Makes one piece of what a socket has received, and returns it: node's session reads on after a piece that has ended it, and fails. */
function joinPieces(socket: Socket): Buffer {
  const pieces: Buffer[] = [];
  for (let piece = socket.read(); piece !== null; piece = socket.read()) pieces.push(piece);
  const bytes = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
  if (bytes.length > 0) socket.unshift(bytes);
  return bytes;
}

/**
 * Refuses the first request of an HTTP/2 connection, and then the connection. A connection that ended before its first
 * request would make clients of gRPC reconnect hundreds of times a second.
 */
export function refuseHttp2(socket: Socket, text: string): void {
  socket.allowHalfOpen = false;
  const session = performServerHandshake(socket);
  session.on("error", () => {});
  session.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    if (stream.destroyed) return;
    if (headers["content-type"]?.startsWith("application/grpc")) {
      const trailers = { "grpc-status": GRPC_INVALID_ARGUMENT, "grpc-message": text };
      stream.respond({ "content-type": "application/grpc", ...trailers }, { endStream: true });
    } else {
      stream.respond({ ":status": constants.HTTP_STATUS_BAD_REQUEST, "content-type": "text/plain" });
      stream.end(`${text}\n`);
    }
    // Node's client drops answers that are on their way when it is told to go.
    stream.on("close", () => {
      if (session.closed) return;
      session.goaway(constants.NGHTTP2_INADEQUATE_SECURITY, stream.id, Buffer.from(text));
      session.close();
    });
  });
}

const GRPC_INVALID_ARGUMENT = "3";
