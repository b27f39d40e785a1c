import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import {
  type AddressInfo,
  createServer as createNetServer,
  type Server as NetServer,
  type Socket,
} from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { LanceError } from "../../namespace/errors.ts";
import type { ConnectionFigures } from "../../namespace/figures.ts";
import type { ByteBudget } from "../../namespace/memory/byte-budget.ts";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { carrierOf } from "../../runtime/internals/tls-carrier.ts";
import type { GrpcHandler } from "../../wires/grpc/handler.ts";
import { exchangeOf } from "../../wires/rest/http.ts";
import { LONGEST_ROUND_TRIP_MS, settlesWithin } from "../connections/drain-session.ts";
import { createHttp1, createNoteBroken } from "../connections/http1.ts";
import { refuseSpecialRequests } from "../connections/http2-refusals.ts";
import { createHttp2Sessions } from "../connections/http2-sessions.ts";
import { countUnread, countUnsent } from "../connections/pending-bytes.ts";
import { noteAnswer, noteRequest } from "../connections/pipelining.ts";
import { createResetAllowances } from "../connections/reset-allowance.ts";
import { type ArrivalPace, GRPC_CONTENT_TYPE } from "../requests/arrival-pace.ts";
import { type Arrivals, createProxyCheck } from "../requests/arrivals.ts";
import {
  findEarlyEncoding,
  findRepeatedCredential,
  readTarget,
  type TakeAddress,
} from "../requests/request-head.ts";
import type { TlsIdentity } from "../tls/identity.ts";
import { type ConnectionLimits, limitsOf } from "./connection-settings.ts";
import { createEntrance, NEEDS_TLS } from "./entrance.ts";
import { type ListenAddress, listenOn } from "./listen.ts";
import {
  createAddressShares,
  createRoomMaker,
  createSpareConnections,
  type Http1State,
  SPARE_FIRST_BYTES_MS,
} from "./make-room.ts";

/** Answers a request of node:http, or of node:http2 through its compatibility API; it uses only what both have. */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** Options of {@link createListener}. */
export interface ListenerOptions extends ConnectionLimits {
  readonly grpc: GrpcHandler;
  readonly http: HttpHandler;
  /** Lets requests begin in their turns of the event loop. */
  readonly pace: ArrivalPace;
  /** Answers HTTP/1.1 requests on connections beyond `maxConnections`, which then end: the probes and a refusal. */
  readonly crowded: HttpHandler;
  /** Answers a request with an error, except for probes if the last argument is true. */
  readonly refuse: (
    request: IncomingMessage,
    response: ServerResponse,
    error: LanceError,
    exceptProbes?: boolean,
  ) => void;
  /** Memory budget of requests, for what has arrived and is not read yet. Default: no bound. */
  readonly budget?: ByteBudget | undefined;
  /** Memory budget of answers that their clients do not take. Default: no bound. */
  readonly unsentBudget?: ByteBudget | undefined;
  /** Keeps account of the requests. Default: nobody does. */
  readonly arrivals?: (() => Arrivals | undefined) | undefined;
  /** Extracts the database from a request's address. Default: addresses name none. */
  readonly takeAddress?: TakeAddress | undefined;
  /** Certificate of the port, which speaks TLS only. Default: the port speaks plain text only. */
  readonly tls?: TlsIdentity | undefined;
  readonly log: Logger;
  /** Networks of proxies, whose connections are those of many clients. Default: none. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** Called for every accepted connection. */
  readonly accepted?: (() => void) | undefined;
  /** Called for requests that no protocol can read. */
  readonly refused?: NoteRefusal | undefined;
}

/** A port for HTTP/1.1 and HTTP/2. */
export interface Listener {
  /** Starts to accept connections, at each address that it is called for. A Unix socket has its path as address, the family `unix` and the port 0. */
  listen(options: ListenAddress): Promise<AddressInfo>;
  /**
   * Tells clients to reconnect with every answer, and serves everything for `delayMs` milliseconds, including new
   * connections. Then accepts nothing more, closes idle connections and waits for running calls; after `graceMs`
   * milliseconds it cuts off the rest. Resolves to whether everything ended by itself.
   */
  close(graceMs: number, delayMs?: number): Promise<boolean>;
  /** Returns what has come and gone since the start. */
  figures(): ConnectionFigures;
}

const TCP_KEEP_ALIVE_MS = 30_000;

/** How long a client that was answered early may continue its body after the server shuts down, in milliseconds. */
const REFUSED_BODY_MS = 250;

/** Creates a listener: the first bytes of a connection, encrypted or not, decide between HTTP/1.1 and HTTP/2. */
export function createListener(options: ListenerOptions): Listener {
  const { grpc, http, pace, crowded, refuse, takeAddress, arrivals, accepted, log, refused } = options;
  const limits = limitsOf(options);
  const { firstBytesMs, headersMs, keepAliveMs, silenceMs, replaceableMs, farewellMs } = limits;
  const { maxConnections, connections } = limits;
  // Each socket with its last response of HTTP/1.1, and then with the time from which on it is idle. A set of responses would
  // cost the collector much: when the set makes room, its old table refers to the new one, and a chain of them keeps every
  // response alive.
  const sockets = new Map<Socket, Http1State>();
  const undecided = new Map<Socket, NodeJS.Timeout>();
  const ended = { connections: 0, received: 0, sent: 0 };
  const spare = createSpareConnections();
  const shares = createAddressShares(createProxyCheck(options.trustedProxies ?? []));
  const onBroken = createNoteBroken(log, refused);
  /** Connections of HTTP/1.1 that end with their answers in flight. */
  const retired = new WeakSet<Socket>();
  /** Connections of HTTP/1.1 after a request whose end is in doubt: what follows it may be a part of it. */
  const doubtful = new WeakSet<Socket>();
  /** Whether clients are told to reconnect, and whether idle connections are closed. */
  let [leaving, draining] = [false, false];
  let isOnPath = false;
  let lastSocketGone: (() => void) | undefined;

  const [unread, unsent] = [countUnread(options.budget), countUnsent(options.unsentBudget)];
  const http1 = createHttp1(
    {
      ...{ headersMs, keepAliveMs, silenceMs, refused },
      noteUnreadable: (error, peer) => onBroken(error, "a connection broke", peer),
    },
    onHttp1Request,
  );
  // This server never listens; it makes request and response objects for streams that are not gRPC.
  const compatibility = createHttp2Server((...both) => {
    ignoreErrors(...both);
    // Node ends a stream without bytes before it has a reader, so its request would not end.
    if (both[0].stream.readableEnded) both[0].push(null);
    const [request, response] = both as unknown as [IncomingMessage, ServerResponse];
    arrivals?.()?.http(request, response);
    const fault = findRepeatedCredential(request.rawHeaders);
    if (fault === undefined) http(request, response);
    else refuse(request, response, fault, true);
  });
  refuseSpecialRequests(compatibility, refused);
  const sessions = createHttp2Sessions({
    ...limits,
    idleness: { firstCallMs: limits.firstCallMs, idleMs: limits.idleSessionMs },
    resets: createResetAllowances(limits.resetCells),
    ...{ pace, unread, unsent },
    onBroken: (error) => onBroken(error, "an HTTP/2 session broke"),
    onCrowded(stream, headers) {
      arrivals?.()?.stream(stream, headers);
      refused?.({ protocol: "http", code: "Throttling", fault: "streams", headers });
    },
    onStream(stream, headers, flags, rawHeaders) {
      if (takeAddress !== undefined) headers[":path"] = takeAddress(headers[":path"] ?? "", headers);
      if (GRPC_CONTENT_TYPE.test(headers["content-type"] ?? "")) {
        arrivals?.()?.stream(stream, headers);
        grpc(stream, headers, findRepeatedCredential(rawHeaders));
      } else compatibility.emit("stream", stream, headers, flags, rawHeaders);
    },
  });
  const room = createRoomMaker({
    ...{ sockets, undecided, sessions, shares, replaceableMs, farewellMs },
    retire(socket) {
      retired.add(socket);
      tellToClose(sockets.get(socket));
    },
  });
  const entrance = createEntrance({
    tls: options.tls,
    ...{ log, refused, serveHttp1, serveHttp2, retire },
    onBroken: (error) => onBroken(error, "a handshake of TLS failed"),
  });
  const ports: NetServer[] = [];

  function onConnection(socket: Socket): void {
    const { remoteAddress: peer } = socket;
    // Its client has reset it already. It has no address, by which limits and logs would know who calls.
    if (peer === undefined && !isOnPath) return void socket.destroy();
    accepted?.();
    sessions.noteConnection();
    sockets.set(socket, undefined);
    connections.publish(sockets.size);
    const isFull = sockets.size + connections.others > maxConnections;
    const isSpare = isFull && !room.endIdle() && !room.takeFromLargest(peer);
    if (isSpare) spare.add(socket);
    else shares.add(socket, peer);
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
    const patienceMs = isSpare ? SPARE_FIRST_BYTES_MS : firstBytesMs;
    undecided.set(
      socket,
      setTimeout(() => socket.destroy(), patienceMs),
    );
    socket.on("error", (error) => onBroken(error, "a connection broke", peer));
    socket.on("close", () => {
      sockets.delete(socket);
      ended.connections += 1;
      ended.received += socket.bytesRead;
      ended.sent += socket.bytesWritten;
      connections.publish(sockets.size);
      decided(socket);
      if (sockets.size === 0) lastSocketGone?.();
    });
    entrance.admit(socket);
  }

  function decided(carrier: Socket): void {
    clearTimeout(undecided.get(carrier));
    undecided.delete(carrier);
  }

  function serveHttp1(socket: Socket): void {
    decided(carrierOf(socket));
    http1.emit("connection", socket);
    socket.resume();
  }

  function serveHttp2(socket: Socket): void {
    const carrier = carrierOf(socket);
    decided(carrier);
    if (spare.has(carrier)) carrier.destroy();
    else sessions.serve(socket);
  }

  function retire(socket: Socket): void {
    if (sessions.retire(socket)) return;
    const carrier = carrierOf(socket);
    const response = sockets.get(carrier);
    retired.add(carrier);
    if (typeof response !== "object") socket.destroySoon();
    else tellToClose(response);
  }

  /** Tells the client of HTTP/1.1 with an answer to reconnect, unless its head is on its way. */
  function tellToClose(response: Http1State): void {
    if (typeof response === "object" && !response.headersSent) response.setHeader("connection", "close");
  }

  function onHttp1Request(request: IncomingMessage, response: ServerResponse): void {
    ignoreErrors(request, response);
    const socket = carrierOf(request.socket);
    sockets.set(socket, response);
    unread.addRequest(request);
    unsent.addResponse(response);
    response.on("close", () => {
      unread.removeRequest(request);
      unsent.removeResponse(response);
      if (sockets.get(socket) === response && request.complete) sockets.set(socket, performance.now());
      // The connection counts as idle only after node has finished the response.
      if (retired.has(socket) && typeof sockets.get(socket) !== "object") request.socket.destroySoon();
      if (draining) setImmediate(() => http1.closeIdleConnections());
      const next = noteAnswer(request.socket, response);
      if (next !== undefined) answerHttp1(next.req, next);
    });
    if (noteRequest(request.socket, response)) answerHttp1(request, response);
  }

  function answerHttp1(request: IncomingMessage, response: ServerResponse): void {
    const socket = carrierOf(request.socket);
    if (doubtful.has(socket)) return;
    const target = request.url ?? "";
    if (spare.has(socket) || pace.enter(target)) beginHttp1(request, response);
    else pace.later(target, exchangeOf(response), () => beginHttp1(request, response));
  }

  function beginHttp1(request: IncomingMessage, response: ServerResponse): void {
    const socket = carrierOf(request.socket);
    const isPlain = entrance.isTooPlain(socket);
    if (leaving || isPlain || spare.has(socket) || retired.has(socket))
      response.setHeader("connection", "close");
    const encoding = findEarlyEncoding(request);
    if (encoding !== undefined) {
      doubtful.add(socket);
      response.setHeader("connection", "close");
    }
    const fault = isPlain ? new LanceError("InvalidInput", NEEDS_TLS) : (encoding ?? readTarget(request));
    if (fault !== undefined) {
      arrivals?.()?.http(request, response);
      refuse(request, response, fault);
      return;
    }
    if (takeAddress !== undefined) request.url = takeAddress(request.url ?? "", request.headers);
    arrivals?.()?.http(request, response);
    const repeated = findRepeatedCredential(request.rawHeaders);
    if (spare.has(socket)) crowded(request, response);
    else if (repeated !== undefined) refuse(request, response, repeated, true);
    else http(request, response);
  }

  return {
    async listen(where) {
      isOnPath ||= "path" in where;
      const port = createNetServer({ allowHalfOpen: true, noDelay: true }, onConnection);
      const address = await listenOn(port, where);
      ports.push(port);
      port.on("error", (error) => log.error({ err: error }, "the port failed"));
      return address;
    },

    figures() {
      let { received, sent } = ended;
      for (const { bytesRead, bytesWritten } of sockets.keys()) {
        received += bytesRead;
        sent += bytesWritten;
      }
      return { open: sockets.size, accepted: ended.connections + sockets.size, received, sent };
    },

    async close(graceMs, delayMs = 0) {
      leaving = true;
      sessions.leave(Math.max(delayMs, LONGEST_ROUND_TRIP_MS));
      for (const response of sockets.values()) tellToClose(response);
      if (delayMs > 0) await sleep(delayMs);
      draining = true;
      for (const port of ports) port.close();
      for (const socket of undecided.keys()) socket.destroy();
      sessions.drain();
      for (const [socket, response] of sockets)
        if (typeof response === "object" && response.headersSent && !response.req.complete)
          setTimeout(() => socket.destroy(), REFUSED_BODY_MS).unref();
      http1.closeIdleConnections();
      const gone = new Promise<void>((resolve) => {
        lastSocketGone = resolve;
        if (sockets.size === 0) resolve();
      });
      const finished = await settlesWithin(gone, graceMs);
      sessions.destroy();
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
