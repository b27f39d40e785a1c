import type { IncomingHttpHeaders } from "node:http";
import type { Readable, Writable } from "node:stream";

/** Bytes of the bodies of a request and its answer, as they travel: compressed ones count as they are. */
export interface Traffic {
  received: number;
  sent: number;
}

/** Stream of a request or an answer whose bytes are counted. */
interface Metered {
  [TRAFFIC]: Traffic;
  push: Pass;
  write: Pass;
  end: Pass;
}

/** The traffic of a stream. No client can write it. */
const TRAFFIC = Symbol("traffic of the stream");

type Pass = (this: unknown, piece: unknown, ...rest: unknown[]) => never;

/*
 * The functions in the place of those of a stream are the same ones for all streams. With a closure for each, V8 promotes 2 KB of a call, and
 * collects a full heap every few seconds.
 */

function countedPush(this: Metered, piece: unknown, ...rest: unknown[]): never {
  this[TRAFFIC].received += sizeOf(piece, rest[0]);
  return (Object.getPrototypeOf(this) as Metered).push.call(this, piece, ...rest);
}

function countedWrite(this: Metered, piece: unknown, ...rest: unknown[]): never {
  this[TRAFFIC].sent += sizeOf(piece, rest[0]);
  return (Object.getPrototypeOf(this) as Metered).write.call(this, piece, ...rest);
}

function countedEnd(this: Metered, piece: unknown, ...rest: unknown[]): never {
  this[TRAFFIC].sent += sizeOf(piece, rest[0]);
  return (Object.getPrototypeOf(this) as Metered).end.call(this, piece, ...rest);
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
  // A request that waited for its turn has bytes already.
  traffic.received = request.readableLength;
  meteredBy(request, traffic).push = countedPush as Pass;
}

/** Counts the bytes of an answer that are written piece by piece. */
export function meterWrites(response: Writable, traffic: Traffic): void {
  meteredBy(response, traffic).write = countedWrite as Pass;
}

/** Counts the bytes with which an answer ends. */
export function meterEnd(response: Writable, traffic: Traffic): void {
  meteredBy(response, traffic).end = countedEnd as Pass;
}

/** Changes the errors that a stream passes to the callbacks of its writes. */
export function changeWriteErrors(response: Writable, change: (error: Error) => Error): void {
  const write = response.write.bind(response) as (...args: unknown[]) => boolean;
  response.write = (piece: unknown, encoding: unknown, callback?: (error?: Error) => void) =>
    write(piece, encoding, (error?: Error) => callback?.(error && change(error)));
}

function meteredBy(stream: object, traffic: Traffic): Metered {
  const metered = stream as Metered;
  metered[TRAFFIC] = traffic;
  return metered;
}

function sizeOf(piece: unknown, encoding: unknown): number {
  if (piece instanceof Uint8Array) return piece.byteLength;
  if (typeof piece !== "string") return 0;
  return Buffer.byteLength(piece, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8");
}
