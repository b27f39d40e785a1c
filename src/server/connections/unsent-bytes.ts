import type { ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { addressCaller } from "../../namespace/call/caller-key.ts";
import type { ByteBudget } from "../../namespace/memory/byte-budget.ts";
import { countStuck } from "../../namespace/memory/stuck-bytes.ts";
import { clientAddress } from "./client-address.ts";

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
