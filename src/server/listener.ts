import { createServer as createHttp1Server, type IncomingMessage, type ServerResponse } from "node:http";
import {
  constants,
  createServer as createHttp2Server,
  performServerHandshake,
  type ServerHttp2Session,
} from "node:http2";
import { type AddressInfo, createServer as createNetServer, type Socket } from "node:net";
import type { Logger } from "pino";
import type { GrpcHandler } from "../wires/grpc/handler.ts";
import type { TakeAddress } from "./addressing.ts";
import { drainSession, settlesWithin } from "./drain.ts";
import { sniff } from "./sniff.ts";

/**
 * Answers a request of node:http, or of node:http2 through its compatibility API: what it may use is what both have.
 */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** The limits of connections. */
export interface ConnectionLimits {
  /** How long a connection may take to send its first bytes, in milliseconds. Default: 10 s. */
  readonly firstBytesMs?: number;
  /** How long an HTTP/1.1 request may take to send its headers, in milliseconds. Default: 30 s. */
  readonly headersMs?: number;
  /** How long an idle HTTP/1.1 connection is kept, in milliseconds. Default: 75 s. */
  readonly keepAliveMs?: number;
  /**
   * How many bytes of one HTTP/2 stream a client may send ahead of whoever reads them; with the way's delay it
   * bounds the speed of an upload. Default: 8 MiB.
   */
  readonly streamWindowBytes?: number;
  /** The same for all streams of one connection together. Default: 32 MiB. */
  readonly sessionWindowBytes?: number;
  /** How many calls one HTTP/2 connection may have open. Default: 1000. */
  readonly maxConcurrentStreams?: number;
}

/** What {@link createListener} needs. */
export interface ListenerOptions extends ConnectionLimits {
  readonly grpc: GrpcHandler;
  readonly http: HttpHandler;
  /** Takes the database out of a request's address. Default: addresses name none. */
  readonly takeAddress?: TakeAddress | undefined;
  readonly log: Logger;
}

/** One port for HTTP/1.1 and HTTP/2. */
export interface Listener {
  /** Begins to accept connections. */
  listen(options: { host: string; port: number }): Promise<AddressInfo>;
  /**
   * Accepts nothing more, tells clients to go, and waits for running calls; after `graceMs` milliseconds what is
   * left is cut off. Resolves to whether everything ended by itself.
   */
  close(graceMs: number): Promise<boolean>;
}

const MIB = 1024 * 1024;
const TCP_KEEP_ALIVE_MS = 30_000;
const GRPC_CONTENT_TYPE = /^application\/grpc(?!-web)/i;

/**
 * Cancelled calls come as resets, and a busy client cancels many; node's default would end its connection after
 * 1000 and then 33 each second. Calls are cheap to begin here, so the flood that this guards against is larger.
 */
const STREAM_RESETS = { streamResetBurst: 20_000, streamResetRate: 2_000 };

/** Creates a listener: the first bytes of a connection decide between HTTP/1.1 and HTTP/2. */
export function createListener(options: ListenerOptions): Listener {
  const { grpc, http, takeAddress, log } = options;
  const { firstBytesMs = 10_000, headersMs = 30_000, keepAliveMs = 75_000 } = options;
  const { streamWindowBytes = 8 * MIB, sessionWindowBytes = 32 * MIB, maxConcurrentStreams = 1000 } = options;
  // Each with its last response of HTTP/1.1. A set of responses would cost the collector dearly: when it makes room, the
  // table that it leaves behind refers to the new one, and a chain of them keeps every response alive.
  const sockets = new Map<Socket, ServerResponse | undefined>();
  const undecided = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  let draining = false;
  let lastSocketGone: (() => void) | undefined;

  // Uploads may take long, so that only the headers of a request have a time limit.
  const http1Timeouts = { requestTimeout: 0, headersTimeout: headersMs, keepAliveTimeout: keepAliveMs };
  const http1 = createHttp1Server(
    { ...http1Timeouts, connectionsCheckingInterval: Math.min(headersMs, 5_000) },
    onHttp1Request,
  );
  // It never listens, and node begins to watch over its timeouts only when it does.
  http1.emit("listening");
  // It never listens either; it makes request and response objects for streams that are not gRPC.
  const compatibility = createHttp2Server((request, response) => {
    ignoreErrors(request, response);
    http(request as unknown as IncomingMessage, response as unknown as ServerResponse);
  });
  const port = createNetServer({ allowHalfOpen: true, noDelay: true }, onConnection);

  function onConnection(socket: Socket): void {
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
    sockets.set(socket, undefined);
    undecided.add(socket);
    socket.on("error", (error) => log.debug({ err: error }, "a connection broke"));
    socket.on("close", () => {
      sockets.delete(socket);
      undecided.delete(socket);
      if (sockets.size === 0) lastSocketGone?.();
    });
    sniff(socket, firstBytesMs, (protocol) => {
      undecided.delete(socket);
      if (protocol === "http2") return serveHttp2(socket);
      http1.emit("connection", socket);
      socket.resume();
    });
  }

  function onHttp1Request(request: IncomingMessage, response: ServerResponse): void {
    ignoreErrors(request, response);
    const { socket } = request;
    sockets.set(socket, response);
    response.on("close", () => {
      if (sockets.get(socket) === response) sockets.set(socket, undefined);
      // The connection counts as idle only when node is through with the response.
      if (draining) setImmediate(() => http1.closeIdleConnections());
    });
    if (draining) response.setHeader("connection", "close");
    if (takeAddress !== undefined) request.url = takeAddress(request.url ?? "", request.headers);
    http(request, response);
  }

  function serveHttp2(socket: Socket): void {
    // Node's HTTP/2 expects a socket that ends when its peer does.
    socket.allowHalfOpen = false;
    const session = performServerHandshake(socket, {
      ...STREAM_RESETS,
      settings: { initialWindowSize: streamWindowBytes, maxConcurrentStreams },
    });
    session.setLocalWindowSize(sessionWindowBytes);
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    session.on("error", (error) => log.debug({ err: error }, "an HTTP/2 session broke"));
    session.on("stream", (stream, headers, flags, rawHeaders) => {
      if (takeAddress !== undefined) headers[":path"] = takeAddress(headers[":path"] ?? "", headers);
      if (GRPC_CONTENT_TYPE.test(headers["content-type"] ?? "")) grpc(stream, headers);
      else compatibility.emit("stream", stream, headers, flags, rawHeaders);
    });
  }

  return {
    listen: ({ host, port: number }) =>
      new Promise((resolve, reject) => {
        port.once("error", reject);
        port.listen(number, host, () => {
          port.off("error", reject);
          port.on("error", (error) => log.error({ err: error }, "the port failed"));
          resolve(port.address() as AddressInfo);
        });
      }),

    async close(graceMs) {
      draining = true;
      port.close();
      for (const socket of undecided) socket.destroy();
      for (const session of sessions) drainSession(session);
      for (const response of sockets.values())
        if (response?.headersSent === false) response.setHeader("connection", "close");
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

/** A client that goes away is an error event, which would end the process if nobody listened. */
function ignoreErrors(...emitters: { on(event: "error", listener: () => void): unknown }[]): void {
  for (const emitter of emitters) emitter.on("error", () => {});
}
