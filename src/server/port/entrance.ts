import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Logger } from "pino";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { carrierOf } from "../../runtime/internals/tls-carrier.ts";
import { refuseHttp2 } from "../connections/http2-sessions.ts";
import type { TlsIdentity } from "../tls/identity.ts";
import { createTlsLayer } from "../tls/layer.ts";
import { type ConnectionProtocol, sniff } from "./sniff.ts";

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
