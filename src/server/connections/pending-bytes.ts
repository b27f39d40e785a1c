import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { addressCaller, addressKey } from "../../namespace/call/caller-key.ts";
import type { ByteBudget } from "../../namespace/memory/byte-budget.ts";
import { countStuck } from "../../namespace/memory/stuck-bytes.ts";
import { waitingPieces } from "../../runtime/internals/readable-state.ts";
import { peerOf } from "../../wires/arrival.ts";

/** Memory that node takes at least for each piece that waits for a reader: a client may send pieces of a byte. */
const PIECE_BYTES = 400;

/** Bytes of a request of HTTP/1.1 that are not counted: beyond 64 KiB and the piece that exceeds them, node reads no further. */
const FREE_BYTES = 128 * 1024;

function heldBy(body: Readable): number {
  return Math.max(body.readableLength, PIECE_BYTES * waitingPieces(body));
}

/** Whether a request of HTTP/1.1 may hold bytes that count, which a short body in pieces of a byte does not. Most have none, and counting takes time. */
function mayHold({ headers }: IncomingMessage): boolean {
  if (headers["transfer-encoding"] !== undefined) return true;
  return Number(headers["content-length"] ?? 0) * PIECE_BYTES > FREE_BYTES;
}

/** Counts what has arrived of requests and is not read yet. */
export interface UnreadBytes {
  addStream(stream: ServerHttp2Stream): void;
  addRequest(request: IncomingMessage): void;
  /** A request of HTTP/1.1 has been answered. */
  removeRequest(request: IncomingMessage): void;
}

/**
 * Creates the count. Node takes as much of HTTP/2 as the window of each stream allows, while nothing reads: the window of the connection does not
 * bound it; of HTTP/1.1 it takes few bytes, but these in any number of pieces. Where the budget has no room, streams of HTTP/2 with unread bytes are
 * reset, and connections of HTTP/1.1 end.
 *
 * @param budget Default: no bound.
 */
export function countUnread(budget?: ByteBudget): UnreadBytes {
  const streams = countStuck<ServerHttp2Stream>({
    budget,
    bytesOf: heldBy,
    isGone: ({ destroyed }) => destroyed,
    clientOf: ({ session }) => addressCaller(clientAddress(session?.socket)),
    end: (stream) => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM),
  });
  const requests = countStuck<IncomingMessage>({
    budget,
    bytesOf: (request) => Math.max(0, heldBy(request) - FREE_BYTES),
    isGone: ({ socket }) => socket.destroyed,
    clientOf: ({ socket }) => addressCaller(clientAddress(socket)),
    end: ({ socket }) => socket.destroy(),
  });
  const leave = function (this: ServerHttp2Stream) {
    streams.remove(this);
  };
  return {
    addStream(stream) {
      if (stream.endAfterHeaders) return;
      streams.add(stream);
      stream.on("close", leave);
    },
    addRequest(request) {
      if (mayHold(request)) requests.add(request);
    },
    removeRequest: requests.remove,
  };
}

/** Memory of a request and its response that wait for others of their connection: a client may send any number of them. */
const WAITING_BYTES = 2 * 1024;

/** Counts what has been written of answers and their clients do not take. */
export interface UnsentBytes {
  addStream(stream: ServerHttp2Stream): void;
  addResponse(response: ServerResponse): void;
  /** An answer of HTTP/1.1 has ended. */
  removeResponse(response: ServerResponse): void;
}

/**
 * Creates the count. An answer is written as a whole, and a client may ask for any number of answers and read none. Where the budget has no room,
 * streams of HTTP/2 are reset, and connections of HTTP/1.1 end.
 *
 * @param budget Default: no bound.
 */
export function countUnsent(budget?: ByteBudget): UnsentBytes {
  const streams = countStuck<ServerHttp2Stream>({
    budget,
    bytesOf: ({ writableLength }) => writableLength,
    isGone: ({ destroyed }) => destroyed,
    clientOf: ({ session }) => addressCaller(clientAddress(session?.socket)),
    end: (stream) => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM),
  });
  const responses = countStuck<ServerResponse>({
    budget,
    // Node gives the socket to the response whose turn it is.
    bytesOf: ({ writableLength, socket }) => writableLength + (socket === null ? WAITING_BYTES : 0),
    // Node does not end the answers that wait for others when their connection breaks.
    isGone: ({ req }) => req.socket.destroyed,
    clientOf: ({ req }) => addressCaller(clientAddress(req.socket)),
    end: ({ req }) => req.socket.destroy(),
  });
  const leave = function (this: ServerHttp2Stream) {
    streams.remove(this);
  };
  return {
    addStream(stream) {
      streams.add(stream);
      stream.on("close", leave);
    },
    addResponse: responses.add,
    removeResponse: responses.remove,
  };
}

/** Addresses of clients by their sockets: thousands of streams may have the same one. */
const addresses = new WeakMap<Socket, string>();

/** Returns the address of a client, or its network of IPv6; an empty text after its connection has ended. */
function clientAddress(socket: Socket | undefined): string {
  if (socket === undefined) return "";
  const address = addresses.get(socket) ?? addressKey(peerOf(socket));
  addresses.set(socket, address);
  return address;
}
