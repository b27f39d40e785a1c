import type { Socket } from "node:net";

/** What the first bytes of a connection say. */
export type ConnectionProtocol = "http1" | "http2";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const METHOD = PREFACE.subarray(0, 4);

/** The bytes begin like HTTP/2 and go on otherwise. */
class BrokenPreface extends Error {
  readonly code = "ERR_HTTP2_PREFACE";
}

/**
 * Finds out what a fresh connection speaks, from first bytes that may come one at a time: the HTTP/2 preface, or
 * else HTTP/1.1. The bytes are put back, and the socket is paused, before `decide` is called.
 *
 * A connection that is not decided within `timeoutMs` is destroyed, as is one that ends before, or whose preface goes
 * wrong.
 */
export function sniff(
  socket: Socket,
  timeoutMs: number,
  decide: (protocol: ConnectionProtocol) => void,
): void {
  let seen: Buffer = Buffer.alloc(0);

  function onData(piece: Buffer): void {
    seen = Buffer.concat([seen, piece]);
    const length = Math.min(seen.length, PREFACE.length);
    const matches = seen.compare(PREFACE, 0, length, 0, length) === 0;
    if (matches && length < PREFACE.length) return;
    // Node's HTTP/1.1 takes the first word for the preface and waits for ever.
    if (!matches && seen.subarray(0, METHOD.length).equals(METHOD)) {
      stop();
      socket.destroy(new BrokenPreface());
      return;
    }
    stop();
    socket.pause();
    socket.unshift(seen);
    decide(matches ? "http2" : "http1");
  }

  function onEnd(): void {
    stop();
    socket.destroy();
  }

  function stop(): void {
    clearTimeout(timer);
    socket.off("data", onData).off("end", onEnd).off("close", stop);
  }

  const timer = setTimeout(onEnd, timeoutMs);
  socket.on("data", onData).on("end", onEnd).on("close", stop);
}
