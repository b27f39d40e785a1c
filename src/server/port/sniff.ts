import type { Socket } from "node:net";

/** Protocols that the first bytes of a connection reveal. */
export type ConnectionProtocol = "tls" | "http1" | "http2";

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
