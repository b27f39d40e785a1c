import type { Readable, Writable } from "node:stream";

/** Bytes of the bodies of a request and its answer, as they travel: compressed ones count as they are. */
export interface Traffic {
  received: number;
  sent: number;
}

/**
 * Counts the bytes of a request and its answer. Reading them by events would change how they flow, so the methods
 * through which node passes them on count.
 */
export function meter(request: Readable, response: Writable, traffic: Traffic): void {
  const push = request.push.bind(request);
  request.push = (piece, encoding) => {
    traffic.received += sizeOf(piece, encoding);
    return push(piece, encoding);
  };
  const write = response.write.bind(response) as Send;
  response.write = ((piece: unknown, ...rest: unknown[]) => {
    traffic.sent += sizeOf(piece, rest[0]);
    return write(piece, ...rest);
  }) as Writable["write"];
  const end = response.end.bind(response) as Send;
  response.end = ((piece: unknown, ...rest: unknown[]) => {
    const before = traffic.sent;
    const result = end(piece, ...rest);
    // Some kinds of responses end through their own write.
    if (traffic.sent === before) traffic.sent += sizeOf(piece, rest[0]);
    return result;
  }) as Writable["end"];
}

type Send = (...args: unknown[]) => never;

function sizeOf(piece: unknown, encoding: unknown): number {
  if (piece instanceof Uint8Array) return piece.byteLength;
  if (typeof piece !== "string") return 0;
  return Buffer.byteLength(piece, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8");
}
