import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Logger } from "pino";
import type { Call } from "../../namespace/call/call.ts";
import { type ErrorName, LanceError, toLanceError } from "../../namespace/errors.ts";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { bytesIn } from "../../runtime/byte-memory.ts";
import type { LoopPace } from "../../runtime/loop-pace.ts";
import { type Deadline, startDeadline } from "../deadline.ts";
import {
  DEFAULT_SILENCE_MS,
  lateMessage,
  MESSAGE_MS,
  onStall,
  onStalledEnd,
  partsOf,
  stalled,
} from "../limits.ts";
import { requestIdOf } from "../rpc.ts";
import { LENT_BYTES } from "./frame.ts";
import { type ErrorDetails, errorTrailers, lanceDetails, OK_TRAILERS } from "./status.ts";

const WITH_TRAILERS = { waitForTrailers: true };
const RESET_DELAY_MS = 50;

/** Valid names of metadata, except for those that belong to the wire and those that HTTP/2 forbids. */
const METADATA_NAME =
  /^(?!grpc-|(?:x-request-id|content-type|content-length|te|trailer|connection|keep-alive|proxy-connection|transfer-encoding|upgrade|http2-settings)$)[0-9a-z_.-]+$/;

/**
 * A call on an HTTP/2 stream: its answer, its end and everything that can interrupt it.
 *
 * It ends exactly once: with a status, or when the peer resets the stream. From then on `done` is true, nothing more
 * is sent, and errors of work that still runs for the call are discarded. `signal` aborts, with a LanceError as its
 * reason, when the client disconnects or the deadline expires.
 */
export class ServerCall {
  readonly stream: ServerHttp2Stream;
  readonly requestId: string;
  /** Path as it was sent. */
  readonly path: string;
  readonly log: Logger;
  /** The call that the request has become. */
  call: Call | undefined;
  /** Headers of the answer, read when the answer starts. */
  responseHeaders: Readonly<Record<string, string>> = {};
  /** Longest time in which the client reads nothing of the answer, in milliseconds; 0 for no limit. */
  silenceMs = DEFAULT_SILENCE_MS;
  /** Lists the details of the error that ends the call. */
  errorDetails: ErrorDetails = lanceDetails;
  done = false;
  /** Called once, when the call is done in any way. For calls that stream: in each short one it would cost the collector much (docs/adr/0028). */
  onDone: (() => void) | undefined;
  /** Memory of a request that is being read, which the end of the call releases. Default: something else releases it. */
  reading: ByteHold | undefined;
  /** Time that the client has for its only message. */
  patience: NodeJS.Timeout | undefined;
  readonly #abort = new AbortController();
  #deadline: Deadline | undefined;
  #trailers: Readonly<Record<string, string>> = OK_TRAILERS;

  readonly #namedByClient: boolean;
  readonly #requestHeaders: IncomingHttpHeaders;
  readonly #refused: NoteRefusal | undefined;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, log: Logger, refused?: NoteRefusal) {
    const givenId = headers["x-request-id"];
    this.stream = stream;
    this.requestId = requestIdOf(givenId);
    this.path = headers[":path"] ?? "";
    this.#namedByClient = givenId !== undefined;
    this.#requestHeaders = headers;
    this.log = log;
    this.#refused = refused;
    // A reset is an error event to node; only the "close" that follows it matters here.
    stream.on("error", ignore);
    const { session } = stream;
    stream.on("close", () => {
      this.#cancel();
      // A session's table of streams keeps a stream from the collector long after its end; without listeners, it at
      // least releases the call. The table of a session that has ended keeps nothing, and removing them costs a third of its end.
      if (session?.destroyed !== true) stream.removeAllListeners().on("error", ignore);
    });
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Identity of the call's connection. */
  get connection(): object | undefined {
    return this.stream.session;
  }

  /** Ends the call with DEADLINE_EXCEEDED unless it is done in time. */
  expireIn(milliseconds: number): void {
    this.#deadline = startDeadline(milliseconds, (error) => this.cutOff(error));
  }

  /** Ends the call with DEADLINE_EXCEEDED unless its only message arrives in time, after which the caller clears `patience`. */
  expectMessage(): void {
    // A client can keep the connection from looking idle by frames without data.
    this.patience = setTimeout(endLate, MESSAGE_MS, this);
  }

  /** Starts the answer, if it has not started. */
  begin(encoding?: "gzip"): void {
    if (this.stream.headersSent) return;
    this.stream.on("wantTrailers", () => this.stream.sendTrailers(this.#trailersWith(this.#trailers)));
    const headers = this.#headers(this.#namedByClient);
    if (encoding !== undefined) headers.push("grpc-encoding", encoding);
    this.stream.respond(headers, WITH_TRAILERS);
  }

  /** Sends the only message of an answer, and a success. */
  answer(frame: Buffer, encoding?: "gzip"): void {
    if (this.done) return;
    this.begin(encoding);
    this.#settle();
    this.stream.end(frame);
    this.#watchEnd();
  }

  /** Sends a message of a stream or a piece of one; resolves when the peer has room for another, or when the call is done. */
  async write(frame: Uint8Array): Promise<void> {
    if (this.done) return;
    this.begin();
    if (!this.stream.write(frame)) await this.#untilTaken((taken) => this.stream.once("drain", taken));
  }

  /** Sends pieces in the same way. Before it resolves, their memory must not change; once the call is done, it may still be read. */
  async lend(pieces: readonly Uint8Array[]): Promise<void> {
    if (bytesIn(pieces) < LENT_BYTES) return this.write(Buffer.concat(pieces));
    if (this.done) return;
    this.begin();
    const { stream } = this;
    for (const part of partsOf(pieces)) {
      // The client may have disconnected since the part before.
      if (this.done) return;
      await this.#untilTaken((taken) => {
        // Otherwise the first piece would leave alone.
        stream.cork();
        const last = part.length - 1;
        for (const [at, piece] of part.entries())
          stream.write(piece, at < last ? undefined : (error) => error ?? taken());
        stream.uncork();
      });
    }
  }

  /** @param begin gets what is to be called when the peer has taken something */
  #untilTaken(begin: (taken: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      const unwatch = onStall(this.silenceMs, () => this.cutOff(stalled(this.silenceMs)));
      const taken = () => {
        unwatch();
        this.stream.off("close", taken);
        resolve();
      };
      this.stream.on("close", taken);
      begin(taken);
    });
  }

  /** Ends an answer that was written with a success. */
  finish(): void {
    if (this.done) return;
    this.begin();
    this.#end(OK_TRAILERS);
    this.#watchEnd();
  }

  /** Ends the call with the status of a thrown value, and logs what clients must not see. */
  fail(thrown: unknown): void {
    if (this.done) return;
    const error = toLanceError(thrown);
    if (error !== thrown) {
      this.log.error({ err: thrown, requestId: this.requestId }, "gRPC call failed with an unknown error");
    }
    if (this.call?.begun !== true) this.noteRefusal(error.kind);
    this.#end(errorTrailers(error, this.requestId, this.errorDetails));
  }

  /** Reports that the request is refused before it becomes a call. */
  noteRefusal(code: ErrorName): void {
    const { requestId, path } = this;
    this.#refused?.({ protocol: "grpc", code, requestId, path, headers: this.#requestHeaders });
  }

  #end(trailers: Readonly<Record<string, string>>): void {
    this.#settle();
    const { stream } = this;
    if (stream.destroyed || stream.closed) return;
    // Clients read the headers of an answer without messages as its trailers.
    if (stream.headersSent || hasMetadata(this.responseHeaders)) {
      this.#trailers = trailers;
      this.begin();
      stream.end();
    } else {
      const all = this.#trailersWith(trailers);
      stream.respond([...this.#headers(false), ...Object.entries(all).flat()], { endStream: true });
    }
    stopReading(stream);
  }

  /**
   * Names and values in turn: node handles a list faster than an object. The request's id is included if the client
   * sent it or the call fails: a header whose value differs in every answer is the most expensive header of all.
   */
  #headers(withRequestId: boolean): string[] {
    const headers = [":status", "200", "content-type", "application/grpc"];
    if (withRequestId) headers.push("x-request-id", this.requestId);
    for (const name in this.responseHeaders) {
      if (METADATA_NAME.test(name)) headers.push(name, this.responseHeaders[name] as string);
    }
    return headers;
  }

  /** Returns the trailers with those of the call. */
  #trailersWith(trailers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const own = this.call?.responseTrailers;
    if (own === undefined) return trailers;
    const named = Object.entries(own).filter(([name]) => METADATA_NAME.test(name));
    return { ...Object.fromEntries(named), ...trailers };
  }

  #settle(): void {
    this.done = true;
    this.#deadline?.clear();
    clearTimeout(this.patience);
    this.reading?.release();
    this.onDone?.();
  }

  #cancel(): void {
    if (this.done) return;
    this.#settle();
    this.#abort.abort(new LanceError("Cancelled", "the client cancelled the call"));
  }

  /**
   * Ends the call with a status if it can still be sent, otherwise without a status, which no client mistakes for a
   * success.
   */
  cutOff(error: LanceError): void {
    if (this.done) return;
    // Trailers would wait behind messages that the client does not read.
    if (this.stream.writableLength === 0) {
      this.fail(error);
    } else {
      this.#settle();
      this.stream.close(constants.NGHTTP2_CANCEL);
    }
    this.#abort.abort(error);
  }

  #watchEnd(): void {
    onStalledEnd(this.stream, this.silenceMs, () => this.stream.close(constants.NGHTTP2_CANCEL));
  }
}

function hasMetadata(headers: Readonly<Record<string, string>>): boolean {
  for (const name in headers) if (METADATA_NAME.test(name)) return true;
  return false;
}

function ignore(): void {}

/** A single function for all calls: with a closure for each, short calls would cost the collector more. */
function endLate(call: ServerCall): void {
  call.cutOff(lateMessage());
}

/**
 * Ends a request whose answer is complete: it discards data in transit, and tells a client that continues to stop. A
 * reset would overtake the answer and destroy it, so it waits until the answer has left.
 */
export function stopReading(stream: ServerHttp2Stream): void {
  if (stream.readableEnded) return;
  // Node's request over the stream would stop it where nobody reads the request, and without a listener it stops when a reader leaves later.
  stream.removeAllListeners("readable").removeAllListeners("data").on("data", ignore).resume();
  const timer = setInterval(() => {
    if (stream.state.localClose === 1) stream.close(constants.NGHTTP2_NO_ERROR);
  }, RESET_DELAY_MS);
  stream.on("close", () => clearInterval(timer));
}

/** Context for serving an rpc: the call, and the encodings of its messages. */
export interface Served {
  readonly serverCall: ServerCall;
  readonly call: Call;
  /** Bytes of the request that are kept. */
  readonly hold: ByteHold;
  readonly pace: LoopPace;
  /** Whether messages with the compressed flag are gzip; otherwise they are an error. */
  readonly gzipIn: boolean;
  /** Size in bytes above which unary answers are packed; Infinity if the client does not accept gzip. */
  readonly gzipMinBytes: number;
  readonly maxMessageBytes: number;
}
