import { createServer, type RequestListener, type Server } from "node:http";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { peerOf } from "../../wires/peer.ts";
import { limitHttp1Silence } from "./client-silence.ts";
import { answerUnreadable } from "./unreadable-requests.ts";

/** Options of {@link createHttp1}. */
export interface Http1Options {
  /** Longest time for the headers of a request, in milliseconds. */
  readonly headersMs: number;
  /** How long an idle connection is kept, in milliseconds. */
  readonly keepAliveMs: number;
  /** Longest silence of a client whose turn it is, in milliseconds; 0 for no limit. */
  readonly silenceMs: number;
  /** Called for requests that get an answer here. */
  readonly refused?: NoteRefusal | undefined;
  /** Called for connections whose bytes are not HTTP/1.1. */
  noteUnreadable(error: NodeJS.ErrnoException, peer: string | undefined): void;
}

/**
 * Creates the server of HTTP/1.1, which never listens: connections come as its event `connection`. It refuses what only
 * HTTP/1.1 has, expectations other than `100-continue` and tunnels, and hands all other requests on.
 */
export function createHttp1(options: Http1Options, answer: RequestListener): Server {
  const { headersMs, keepAliveMs, silenceMs, refused } = options;
  const http1 = createServer(
    {
      requireHostHeader: false,
      // Uploads may take long: only the headers of a request have a limit on their total time.
      requestTimeout: 0,
      headersTimeout: headersMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: Math.min(headersMs, 5_000),
    },
    answer,
  );
  http1.on("checkContinue", (request, response) => {
    // A refusal by the headers precedes the client's body.
    request.on("newListener", function onReader(event) {
      if (event !== "data" && event !== "readable") return;
      request.off("newListener", onReader);
      if (!response.headersSent) response.writeContinue();
    });
    answer(request, response);
  });
  http1.on("checkExpectation", ({ socket }, response) => {
    const { peer } = peerOf(socket);
    refused?.({ protocol: "http", code: "InvalidInput", fault: "expectation", peer });
    response.writeHead(417, { connection: "close" }).end();
  });
  http1.on("connect", (request, socket) => {
    const { peer } = peerOf(request.socket);
    refused?.({ protocol: "http", code: "MethodNotAllowed", fault: "connect", peer });
    // Node no longer reads or times this connection, so its client could keep it open forever, and its end stays unread.
    socket.end("HTTP/1.1 405 Method Not Allowed\r\nconnection: close\r\n\r\n", () => socket.destroy());
  });
  answerUnreadable(http1, options.noteUnreadable);
  // This server never listens, and node watches its timeouts only from that event on.
  http1.emit("listening");
  limitHttp1Silence(http1, silenceMs);
  return http1;
}
