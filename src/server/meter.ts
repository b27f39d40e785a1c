import type { IncomingHttpHeaders } from "node:http";
import type { Readable, Writable } from "node:stream";

/** Bytes of the bodies of a request and its answer, as they travel: compressed ones count as they are. */
export interface Traffic {
  received: number;
  sent: number;
}

/**
 * Counts the bytes of a request. A length that the client has announced is one that node holds it to. Reading others
 * by events would change how they flow, so the method counts through which node passes them on.
 */
export function meterRequest(request: Readable, headers: IncomingHttpHeaders, traffic: Traffic): void {
  const announced = headers["content-length"];
  if (announced !== undefined) {
    traffic.received = Number(announced);
    return;
  }
  const { push } = request;
  request.push = function counted(piece, encoding) {
    traffic.received += sizeOf(piece, encoding);
    return push.call(this, piece, encoding);
  };
}

/** Counts the bytes of an answer that are written piece by piece. */
export function meterWrites(response: Writable, traffic: Traffic): void {
  const write = response.write as Send;
  response.write = function counted(this: Writable, piece: unknown, ...rest: unknown[]) {
    traffic.sent += sizeOf(piece, rest[0]);
    return write.call(this, piece, ...rest);
  } as Writable["write"];
}

/** Counts the bytes with which an answer ends. */
export function meterEnd(response: Writable, traffic: Traffic): void {
  const end = response.end as Send;
  response.end = function counted(this: Writable, piece: unknown, ...rest: unknown[]) {
    traffic.sent += sizeOf(piece, rest[0]);
    return end.call(this, piece, ...rest);
  } as Writable["end"];
}

type Send = (this: unknown, ...args: unknown[]) => never;

function sizeOf(piece: unknown, encoding: unknown): number {
  if (piece instanceof Uint8Array) return piece.byteLength;
  if (typeof piece !== "string") return 0;
  return Buffer.byteLength(piece, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8");
}
