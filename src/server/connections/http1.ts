import { createServer, type RequestListener, type Server, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { peerOf } from "../../wires/arrival.ts";
import { errorText } from "../../wires/rest/http.ts";
import { limitHttp1Silence } from "./client-silence.ts";
import { openResponses } from "./pipelining.ts";

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

/** Node's codes for requests that it cannot read, the error rows nearest to its answers, and the statuses of these. */
const UNREADABLE: readonly (readonly [RegExp, ErrorName, number])[] = [
  [/^HPE_HEADER_OVERFLOW$/, "PayloadTooLarge", 431],
  [/^HPE_CHUNK_EXTENSIONS_OVERFLOW$/, "PayloadTooLarge", 413],
  [/^ERR_HTTP_REQUEST_TIMEOUT$/, "DeadlineExceeded", 408],
  [/^(?:HPE_|ERR_HTTP2_|ERR_SSL_)/, "InvalidInput", 400],
];

/** How long a client that sends something other than HTTP has to read the answer, in milliseconds. */
const LINGER_MS = 1_000;

/** Returns the name of the error for node's code of a request that it cannot read; undefined for other codes. */
function errorOfUnreadable(fault: string): ErrorName | undefined {
  return UNREADABLE.find(([pattern]) => pattern.test(fault))?.[1];
}

/**
 * Answers requests of HTTP/1.1 that node cannot read with an error of the table. Node itself would answer them without a
 * body, and close the connection at once: a client that still sends would lose an answer that is on its way.
 *
 * @param noteUnreadable called once for each such connection.
 */
function answerUnreadable(
  http1: Server,
  noteUnreadable: (error: NodeJS.ErrnoException, peer: string | undefined) => void,
): void {
  const answered = new WeakSet<Socket>();
  http1.on("clientError", (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket;
    // Node reads on, and fails with each further piece.
    if (answered.has(socket)) return;
    answered.add(socket);
    noteUnreadable(error, peerOf(socket).peer);
    if (!socket.writable) return void socket.destroy();
    if (openResponses(socket)[0]?.headersSent !== true) socket.end(answerTo(error));
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.on("close", () => clearTimeout(timer));
    if (socket.readableEnded) socket.destroySoon();
    else socket.on("end", () => socket.destroySoon());
  });
}

function answerTo({ code = "", message }: NodeJS.ErrnoException): string {
  const [, name, status] = UNREADABLE.find(([pattern]) => pattern.test(code)) ?? NOT_HTTP;
  const reason = message.replace(/^Parse Error: /, "");
  const error = new LanceError(name, `the request cannot be read as HTTP/1.1: ${reason}`);
  const text = errorText(error, status, "");
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "connection: close",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(text)}`,
    "",
    text,
  ].join("\r\n");
}

const NOT_HTTP = [/^/, "InvalidInput", 400] as const;

/** Takes note of the error of a connection; the text says what has failed. */
type NoteBroken = (error: NodeJS.ErrnoException, text: string, peer?: string) => void;

/** Creates the function that notes broken connections: a client that sends bytes other than HTTP is refused, one that has disconnected is not. */
export function createNoteBroken(log: Logger, refused: NoteRefusal | undefined): NoteBroken {
  const told = new WeakSet<Error>();
  return (error, text, peer) => {
    const { code: fault = "" } = error;
    const code = errorOfUnreadable(fault);
    if (code === undefined) log.debug({ err: error }, text);
    // A session and its socket fail with the same error.
    else if (!told.has(error)) refused?.({ protocol: "http", code, fault, peer });
    told.add(error);
  };
}
