import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Logger } from "pino";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { carrierOf } from "../../runtime/internals/tls-carrier.ts";
import { refuseHttp2 } from "../connections/http2-sessions.ts";
import type { TlsIdentity } from "../tls/identity.ts";
import { createTlsLayer } from "../tls/layer.ts";

/** Options of {@link createEntrance}. */
export interface EntranceOptions {
  /** Certificate of the port, which speaks TLS only. Default: the port speaks plain text only. */
  readonly tls: TlsIdentity | undefined;
  readonly log: Logger;
  /** Called for connections that are refused here. */
  readonly refused: NoteRefusal | undefined;
  /** Serves a connection, which is paused, and begins with the first bytes of the protocol. */
  serveHttp1(socket: Socket): void;
  serveHttp2(socket: Socket): void;
  /** Ends a connection after its running calls, because the authorities that judged its certificate have changed. */
  retire(socket: Socket): void;
  /** Called when a handshake, or an encrypted connection, breaks. */
  onBroken(error: NodeJS.ErrnoException): void;
}

/** Finds out what the clients of a port speak. */
export interface Entrance {
  /** Serves or refuses a new connection. */
  admit(socket: Socket): void;
  /** Whether requests on a connection must be refused because they are not encrypted. */
  isTooPlain(socket: Socket): boolean;
}

/** Answer to plain text on a port that speaks TLS. */
export const NEEDS_TLS = "this port speaks TLS: use https://, or TLS in gRPC";

const NEEDS_PLAIN = "this port speaks plain text: use http://, or no TLS in gRPC\n";

/**
 * Answer to TLS on a port for plain text. It is the text of HTTP, because clients that meet it say so, while
 * an alert of TLS would make them complain about the server's ciphers.
 */
const PLAIN_ANSWER = [
  "HTTP/1.1 400 Bad Request",
  "content-type: text/plain",
  `content-length: ${NEEDS_PLAIN.length}`,
  "connection: close",
  "",
  NEEDS_PLAIN,
].join("\r\n");

/** Interval between lines of the log about TLS on a port for plain text, in milliseconds. */
const TELL_EVERY_MS = 60_000;

/** Protocols by the client's choice (ALPN), which its bytes must follow. */
const CHOSEN: Readonly<Record<string, ConnectionProtocol>> = { h2: "http2", "http/1.1": "http1" };

/** Creates the entrance of a port: the first bytes of a connection decide, and after a handshake the first ones of its content. */
export function createEntrance(options: EntranceOptions): Entrance {
  const { tls, log, refused, onBroken } = options;
  const tooPlain = new WeakSet<Socket>();
  let toldAt = Number.NEGATIVE_INFINITY;
  const layer = tls && createTlsLayer(tls, { onSecure, onFailed: onBroken, onStale: options.retire });

  function serve(socket: Socket, protocol: "http1" | "http2"): void {
    if (protocol === "http2") options.serveHttp2(socket);
    else options.serveHttp1(socket);
  }

  function onSecure(socket: TLSSocket): void {
    socket.on("error", onBroken);
    sniff(socket, (protocol) => {
      const chosen = CHOSEN[socket.alpnProtocol || ""] ?? protocol;
      // TLS in TLS, or bytes that another protocol could have been made to send.
      if (protocol === "tls" || protocol !== chosen) carrierOf(socket).destroy();
      else serve(socket, protocol);
    });
  }

  function refuseTls(socket: Socket): void {
    refused?.({ protocol: "http", code: "InvalidInput", fault: "tls", peer: socket.remoteAddress });
    if (performance.now() - toldAt > TELL_EVERY_MS) {
      toldAt = performance.now();
      log.warn(
        "a client speaks TLS to this port, which speaks plain text; --tls-cert and --tls-key change that",
      );
    }
    socket.end(PLAIN_ANSWER, () => socket.destroy());
  }

  function refusePlain(socket: Socket, protocol: "http1" | "http2"): void {
    if (protocol === "http2") {
      refused?.({ protocol: "http", code: "InvalidInput", fault: "plain text", peer: socket.remoteAddress });
      refuseHttp2(socket, NEEDS_TLS);
    } else {
      tooPlain.add(socket);
      options.serveHttp1(socket);
    }
  }

  return {
    admit(socket) {
      sniff(socket, (protocol) => {
        if (protocol === "tls") (layer?.accept ?? refuseTls)(socket);
        else (layer === undefined ? serve : refusePlain)(socket, protocol);
      });
    },
    isTooPlain: (socket) => tooPlain.has(socket),
  };
}

/** Protocols that the first bytes of a connection reveal. */
type ConnectionProtocol = "tls" | "http1" | "http2";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const METHOD = PREFACE.subarray(0, 4);
/** Type of the record with which a client begins TLS, a byte that no method of HTTP has. */
const TLS_HANDSHAKE = 0x16;

/** Bytes that begin like HTTP/2 and continue otherwise. */
class BrokenPreface extends Error {
  readonly code = "ERR_HTTP2_PREFACE";
}

/**
 * Detects the protocol of a new connection from its first bytes, which may arrive one at a time: a record of TLS, the
 * HTTP/2 preface, otherwise HTTP/1.1. Before it calls `decide`, it puts the bytes back and pauses the socket.
 *
 * It destroys a connection that ends before it is decided, or whose preface is broken.
 */
export function sniff(socket: Socket, decide: (protocol: ConnectionProtocol) => void): void {
  let seen: Buffer = Buffer.alloc(0);

  function onData(piece: Buffer): void {
    seen = Buffer.concat([seen, piece]);
    const length = Math.min(seen.length, PREFACE.length);
    const matches = seen.compare(PREFACE, 0, length, 0, length) === 0;
    if (matches && length < PREFACE.length) return;
    stop();
    // Node's HTTP/1.1 mistakes the first word for the preface and waits forever.
    if (!matches && seen.subarray(0, METHOD.length).equals(METHOD)) {
      socket.destroy(new BrokenPreface());
      return;
    }
    socket.pause();
    socket.unshift(seen);
    decide(protocolOf(seen, matches));
  }

  function onEnd(): void {
    stop();
    socket.destroy();
  }

  function stop(): void {
    socket.off("data", onData).off("end", onEnd).off("close", stop);
  }

  socket.on("data", onData).on("end", onEnd).on("close", stop);
}

function protocolOf(bytes: Buffer, hasPreface: boolean): ConnectionProtocol {
  if (bytes[0] === TLS_HANDSHAKE) return "tls";
  return hasPreface ? "http2" : "http1";
}
