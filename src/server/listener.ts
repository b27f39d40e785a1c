import type { IncomingMessage, ServerResponse } from "node:http";
import {
  constants,
  createServer as createHttp2Server,
  performServerHandshake,
  type ServerHttp2Session,
} from "node:http2";
import { type AddressInfo, createServer as createNetServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { ErrorName, LanceError } from "../namespace/errors.ts";
import { type SharedQuantity, UNSHARED } from "../namespace/sharing.ts";
import type { NoteRefusal } from "../pipeline/refusals.ts";
import type { GrpcHandler } from "../wires/grpc/handler.ts";
import { DEFAULT_SILENCE_MS } from "../wires/stall.ts";
import type { TakeAddress } from "./addressing.ts";
import { drainSession, LONGEST_ROUND_TRIP_MS, settlesWithin } from "./drain.ts";
import { createHttp1 } from "./http1.ts";
import { createResetAllowances } from "./reset-allowance.ts";
import { limitIdleness, limitStreamSilence } from "./silence.ts";
import { sniff } from "./sniff.ts";
import { createSpareConnections, SPARE_FIRST_BYTES_MS } from "./spare-connections.ts";
import { readTarget } from "./target.ts";

/** Answers a request of node:http, or of node:http2 through its compatibility API; it uses only what both have. */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** Limits of connections. */
export interface ConnectionLimits {
  /** Longest time until a connection sends its first bytes, in milliseconds. Default: 10 s. */
  readonly firstBytesMs?: number;
  /** Longest time for the headers of an HTTP/1.1 request, in milliseconds. Default: 30 s. */
  readonly headersMs?: number;
  /**
   * How long an idle HTTP/1.1 connection is kept, in milliseconds. Default: 620 s, which outlives common proxies'
   * pools.
   */
  readonly keepAliveMs?: number;
  /**
   * Longest silence of a client whose turn it is, in milliseconds: it neither continues a body nor reads an answer; 0
   * for no limit. Default: 60 s.
   */
  readonly silenceMs?: number;
  /** How long an HTTP/2 connection is kept before its first call, in milliseconds. Default: 60 s. */
  readonly firstCallMs?: number;
  /** How long an HTTP/2 connection is kept after its last call, in milliseconds. Default: 15 min. */
  readonly idleSessionMs?: number;
  /** Maximum number of connections. Default: 4096. */
  readonly maxConnections?: number;
  /** Connections of all workers of the process. Default: there is a single worker. */
  readonly connections?: SharedQuantity | undefined;
  /**
   * How many bytes of an HTTP/2 stream a client may send ahead of their reader; with the latency it bounds the speed
   * of an upload. Default: 8 MiB.
   */
  readonly streamWindowBytes?: number;
  /** How many bytes a client may send ahead on all streams of a connection together. Default: 32 MiB. */
  readonly sessionWindowBytes?: number;
  /** Maximum number of open calls on an HTTP/2 connection. Default: 1000. */
  readonly maxConcurrentStreams?: number;
}

/** Options of {@link createListener}. */
export interface ListenerOptions extends ConnectionLimits {
  readonly grpc: GrpcHandler;
  readonly http: HttpHandler;
  /** Answers HTTP/1.1 requests on connections beyond `maxConnections`, which then end: the probes and a refusal. */
  readonly crowded: HttpHandler;
  /** Answers a request with an error. */
  readonly refuse: (request: IncomingMessage, response: ServerResponse, error: LanceError) => void;
  /** Extracts the database from a request's address. Default: addresses name none. */
  readonly takeAddress?: TakeAddress | undefined;
  readonly log: Logger;
  /** Called for every accepted connection. */
  readonly accepted?: (() => void) | undefined;
  /** Called for requests that no protocol can read. */
  readonly refused?: NoteRefusal | undefined;
}

/** Where a listener accepts connections. */
export interface ListenAddress {
  readonly host: string;
  /** 0 for a free one. */
  readonly port: number;
  /** Whether several listeners share the port; the system spreads connections over them. Default: false. */
  readonly reusePort?: boolean | undefined;
}

/** A port for HTTP/1.1 and HTTP/2. */
export interface Listener {
  /** Starts to accept connections. */
  listen(options: ListenAddress): Promise<AddressInfo>;
  /**
   * Tells clients to reconnect with every answer, and serves everything for `delayMs` milliseconds, including new
   * connections. Then accepts nothing more, closes idle connections and waits for running calls; after `graceMs`
   * milliseconds it cuts off the rest. Resolves to whether everything ended by itself.
   */
  close(graceMs: number, delayMs?: number): Promise<boolean>;
}

const MIB = 1024 * 1024;
const TCP_KEEP_ALIVE_MS = 30_000;
const GRPC_CONTENT_TYPE = /^application\/grpc(?!-web)/i;

/**
 * Node refuses new streams of a connection whose queues exceed this, in megabytes. Each stream waits for its reader
 * with a single message, and the number of streams is bounded, so stalled readers must not fail the others.
 */
const MAX_SESSION_MEMORY = 4096;

/** How long a client that was answered early may continue its body after the server shuts down, in milliseconds. */
const REFUSED_BODY_MS = 250;

/** Node's codes for requests that it cannot read, and the error rows nearest to its answers. */
const NO_HTTP: readonly (readonly [RegExp, ErrorName])[] = [
  [/^HPE_(?:HEADER|CHUNK_EXTENSIONS)_OVERFLOW$/, "PayloadTooLarge"],
  [/^ERR_HTTP_REQUEST_TIMEOUT$/, "DeadlineExceeded"],
  [/^(?:HPE_|ERR_HTTP2_)/, "InvalidInput"],
];

/** Creates a listener: the first bytes of a connection decide between HTTP/1.1 and HTTP/2. */
export function createListener(options: ListenerOptions): Listener {
  const { grpc, http, crowded, refuse, takeAddress, accepted, log, refused } = options;
  const { firstBytesMs = 10_000, headersMs = 30_000, keepAliveMs = 620_000 } = options;
  const { silenceMs = DEFAULT_SILENCE_MS, maxConnections = 4096, connections = UNSHARED } = options;
  const idleness = { firstCallMs: options.firstCallMs ?? 60_000, idleMs: options.idleSessionMs ?? 900_000 };
  const { streamWindowBytes = 8 * MIB, sessionWindowBytes = 32 * MIB, maxConcurrentStreams = 1000 } = options;
  // Each socket with its last response of HTTP/1.1. A set of responses would cost the collector much: when the set
  // makes room, its old table refers to the new one, and a chain of them keeps every response alive.
  const sockets = new Map<Socket, ServerResponse | undefined>();
  const undecided = new Set<Socket>();
  const told = new WeakSet<Error>();
  const spare = createSpareConnections();
  const sessions = new Set<ServerHttp2Session>();
  const resets = createResetAllowances();
  const toldToGo = new WeakSet<ServerHttp2Session>();
  /** Whether clients are told to reconnect, and whether idle connections are closed. */
  let [leaving, draining] = [false, false];
  let goingMs = LONGEST_ROUND_TRIP_MS;
  let lastSocketGone: (() => void) | undefined;

  const http1 = createHttp1({ headersMs, keepAliveMs, silenceMs, refused }, onHttp1Request);
  // This server never listens; it makes request and response objects for streams that are not gRPC.
  const compatibility = createHttp2Server((request, response) => {
    ignoreErrors(request, response);
    http(request as unknown as IncomingMessage, response as unknown as ServerResponse);
  });
  const port = createNetServer({ allowHalfOpen: true, noDelay: true }, onConnection);

  function onConnection(socket: Socket): void {
    accepted?.();
    sockets.set(socket, undefined);
    connections.publish(sockets.size);
    const isSpare = sockets.size + connections.others > maxConnections;
    if (isSpare) spare.add(socket);
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
    undecided.add(socket);
    socket.on("error", (error) => onBroken(error, "a connection broke"));
    socket.on("close", () => {
      sockets.delete(socket);
      connections.publish(sockets.size);
      undecided.delete(socket);
      if (sockets.size === 0) lastSocketGone?.();
    });
    sniff(socket, isSpare ? SPARE_FIRST_BYTES_MS : firstBytesMs, (protocol) => {
      undecided.delete(socket);
      if (protocol === "http2") return isSpare ? socket.destroy() : serveHttp2(socket);
      http1.emit("connection", socket);
      socket.resume();
    });
  }

  function tellToGo(session: ServerHttp2Session, longestMs: number): void {
    toldToGo.add(session);
    drainSession(session, longestMs);
  }

  /** A client that sends bytes other than HTTP is refused; one that has disconnected is not. */
  function onBroken(error: NodeJS.ErrnoException, text: string): void {
    const { code: fault = "" } = error;
    const code = NO_HTTP.find(([pattern]) => pattern.test(fault))?.[1];
    if (code === undefined) log.debug({ err: error }, text);
    // A session and its socket fail with the same error.
    else if (!told.has(error)) refused?.({ protocol: "http", code, fault });
    told.add(error);
  }

  function onHttp1Request(request: IncomingMessage, response: ServerResponse): void {
    ignoreErrors(request, response);
    const { socket } = request;
    sockets.set(socket, response);
    response.on("close", () => {
      if (sockets.get(socket) === response && request.complete) sockets.set(socket, undefined);
      // The connection counts as idle only after node has finished the response.
      if (draining) setImmediate(() => http1.closeIdleConnections());
    });
    if (leaving || spare.has(socket)) response.setHeader("connection", "close");
    const fault = readTarget(request);
    if (fault !== undefined) {
      refuse(request, response, fault);
      return;
    }
    if (takeAddress !== undefined) request.url = takeAddress(request.url ?? "", request.headers);
    (spare.has(socket) ? crowded : http)(request, response);
  }

  function serveHttp2(socket: Socket): void {
    // Node's HTTP/2 expects a socket that ends when its peer does.
    socket.allowHalfOpen = false;
    const { remoteAddress } = socket;
    const session = performServerHandshake(socket, {
      ...resets.of(remoteAddress),
      maxSessionMemory: MAX_SESSION_MEMORY,
      settings: { initialWindowSize: streamWindowBytes, maxConcurrentStreams },
    });
    session.setLocalWindowSize(sessionWindowBytes);
    sessions.add(session);
    const calls = limitIdleness(session, idleness);
    session.on("close", () => sessions.delete(session));
    session.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ERR_HTTP2_ERROR") resets.noteBroken(remoteAddress);
      onBroken(error, "an HTTP/2 session broke");
    });
    session.on("stream", (stream, headers, flags, rawHeaders) => {
      // A stream that was reset with its first bytes needs no answer, and has no reader for it.
      if (stream.destroyed || stream.aborted) return ignoreErrors(stream);
      calls.opened(stream);
      // A client that waits for an answer is not about to make a call, which it would fail itself.
      if (leaving && !toldToGo.has(session)) tellToGo(session, goingMs);
      if (silenceMs > 0) limitStreamSilence(stream, silenceMs);
      if (takeAddress !== undefined) headers[":path"] = takeAddress(headers[":path"] ?? "", headers);
      if (GRPC_CONTENT_TYPE.test(headers["content-type"] ?? "")) grpc(stream, headers);
      else compatibility.emit("stream", stream, headers, flags, rawHeaders);
    });
  }

  return {
    listen: ({ host, port: number, reusePort = false }) =>
      new Promise((resolve, reject) => {
        port.once("error", reject);
        port.listen({ port: number, host, reusePort }, () => {
          port.off("error", reject);
          port.on("error", (error) => log.error({ err: error }, "the port failed"));
          resolve(port.address() as AddressInfo);
        });
      }),

    async close(graceMs, delayMs = 0) {
      leaving = true;
      goingMs = Math.max(delayMs, LONGEST_ROUND_TRIP_MS);
      for (const response of sockets.values())
        if (response?.headersSent === false) response.setHeader("connection", "close");
      if (delayMs > 0) await sleep(delayMs);
      draining = true;
      port.close();
      for (const socket of undecided) socket.destroy();
      for (const session of sessions) tellToGo(session, LONGEST_ROUND_TRIP_MS);
      for (const [socket, response] of sockets)
        if (response?.headersSent && !response.req.complete)
          setTimeout(() => socket.destroy(), REFUSED_BODY_MS).unref();
      http1.closeIdleConnections();
      const gone = new Promise<void>((resolve) => {
        lastSocketGone = resolve;
        if (sockets.size === 0) resolve();
      });
      const finished = await settlesWithin(gone, graceMs);
      for (const session of sessions) session.destroy(undefined, constants.NGHTTP2_CANCEL);
      for (const socket of sockets.keys()) socket.destroy();
      http1.close();
      return finished;
    },
  };
}

const ignore = () => {};

/** A disconnected client is an error event, which would end the process without a listener. */
function ignoreErrors(...emitters: { on(event: "error", listener: () => void): unknown }[]): void {
  for (const emitter of emitters) emitter.on("error", ignore);
}
