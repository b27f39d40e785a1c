import type { ServerResponse } from "node:http";
import { constants } from "node:http2";
import type { Writable } from "node:stream";
import type { Logger } from "pino";
import type { Call } from "../../namespace/call.ts";
import { LanceError, toLanceError } from "../../namespace/errors.ts";
import { stopReading } from "../grpc/server-call.ts";
import { DEFAULT_SILENCE_MS, onStall, onStalledEnd, stalled } from "../stall.ts";
import { errorText } from "./error-body.ts";
import { isHttp2, type RestRequest, type RestResponse } from "./http.ts";
import { discardBody, hasLongRest } from "./linger.ts";

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A first piece of no more bytes than this may be the whole answer, which then leaves in one packet. */
const SMALL_PIECE_BYTES = 64 * 1024;

/** Headers that are the wire's own or the connection's; a call cannot set them. */
const RESERVED =
  /^(?::.*|content-length|te|trailer|connection|keep-alive|proxy-connection|transfer-encoding|upgrade|x-request-id)$/;

/**
 * One request and its answer, over HTTP/1.1 or HTTP/2, and everything that can cut it short.
 *
 * It is done exactly once: when its answer is handed over, or when the client is gone. From then on nothing more
 * is sent. `signal` aborts, with a LanceError as its reason, when the client is gone or the deadline has passed.
 */
export class Exchange {
  readonly request: RestRequest;
  readonly response: RestResponse;
  readonly requestId: string;
  /** The path as it was sent. */
  readonly path: string;
  readonly log: Logger;
  /** The call that the request has become. */
  call: Call | undefined;
  /** Headers of the answer; they are read when it begins. */
  responseHeaders: Readonly<Record<string, string>> = {};
  /** Headers that every answer to this client has. */
  dialectHeaders: Readonly<Record<string, string>> = {};
  /**
   * How long a client of HTTP/2 may take nothing of the answer, in milliseconds; 0 for no limit. Over HTTP/1.1 the
   * connection has this limit.
   */
  silenceMs = DEFAULT_SILENCE_MS;
  done = false;
  /** The HTTP status of an error. */
  statusOf: (error: LanceError) => number = ({ entry }) => entry.httpStatus;
  /** Called once, when the exchange is done in whatever way. */
  onDone: (() => void) | undefined;
  readonly #abort = new AbortController();
  #deadline: NodeJS.Timeout | undefined;
  #wrote = false;

  constructor(request: RestRequest, response: RestResponse, path: string, requestId: string, log: Logger) {
    this.request = request;
    this.response = response;
    this.path = path;
    this.requestId = requestId;
    this.log = log;
    // A lost connection is an error event to node; "close" follows it and is all that matters here.
    request.on("error", () => {});
    response.on("error", () => {});
    response.on("close", () => this.#cancel());
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Answers DeadlineExceeded unless the exchange is done in time. */
  expireIn(milliseconds: number): void {
    if (milliseconds > LONGEST_TIMER_MS) return;
    this.#deadline = setTimeout(() => this.#expire(), milliseconds);
  }

  /** Sends a whole answer. Without a content type it has no body. */
  answer(status: number, contentType: string | undefined, text: string): void {
    if (this.done) return;
    this.#send(status, contentType, text, this.responseHeaders);
  }

  /** Sends the head of an answer whose body is written piece by piece. */
  begin(status: number, contentType: string): void {
    if (this.done) return;
    const headers = { ...this.#headers(this.responseHeaders), "content-type": contentType };
    (this.response as ServerResponse).writeHead(status, headers);
  }

  /**
   * Sends a piece of the body. Resolves when the system has taken it, so that its memory is no longer in use, or
   * when the exchange is done; a small first piece is not waited for.
   */
  async write(piece: Uint8Array): Promise<void> {
    if (this.done) return;
    const response: Writable = this.response as ServerResponse;
    const isFirst = !this.#wrote;
    this.#wrote = true;
    if (isFirst && piece.byteLength <= SMALL_PIECE_BYTES) {
      response.write(piece);
      return;
    }
    await new Promise<void>((resolve) => {
      const unwatch = isHttp2(this.response)
        ? onStall(this.silenceMs, () => this.cutOff(stalled(this.silenceMs)))
        : undefined;
      const resume = () => {
        unwatch?.();
        response.off("close", resume);
        resolve();
      };
      response.on("close", resume);
      response.write(piece, (error) => error ?? resume());
    });
  }

  /** Ends a body that was written piece by piece. */
  finish(): void {
    if (this.done) return;
    this.#settle();
    this.response.end();
    this.#watchEnd();
  }

  /**
   * Answers with the error of a thrown value; what clients must not see is logged. After the head has gone
   * it breaks the connection or the stream off, so that the client cannot take what it has for the whole.
   */
  fail(thrown: unknown): void {
    if (this.done) return;
    const error = toLanceError(thrown);
    if (error !== thrown) {
      this.log.error({ err: thrown, requestId: this.requestId }, "REST call failed with an unknown error");
      // They may be what failed: a header with a line break, for one.
      this.responseHeaders = {};
    }
    if (this.response.headersSent) this.breakOff();
    else this.#answerError(error);
  }

  /** Ends the exchange in a way that no client takes for a regular end. */
  breakOff(): void {
    this.#settle();
    const { response } = this;
    if (isHttp2(response)) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    else response.destroy();
  }

  /** Fails, and tells whoever still works on the answer. */
  cutOff(error: LanceError): void {
    if (this.done) return;
    this.fail(error);
    this.#abort.abort(error);
  }

  #answerError(error: LanceError): void {
    const status = this.statusOf(error);
    const text = errorText(error, status, this.path);
    try {
      this.#send(status, "application/json", text, { ...this.responseHeaders, ...error.headers });
    } catch (cause) {
      this.log.error({ err: cause, requestId: this.requestId }, "the headers of an error cannot be sent");
      this.breakOff();
    }
  }

  #send(
    status: number,
    contentType: string | undefined,
    text: string,
    extra: Readonly<Record<string, string>>,
  ): void {
    const { request, response } = this;
    const headers = this.#headers(extra);
    headers["content-length"] = Buffer.byteLength(text);
    if (contentType !== undefined) headers["content-type"] = contentType;
    if (isHttp2(response)) {
      response.writeHead(status, headers);
      this.#settle();
      response.end(text);
      stopReading(response.stream);
      this.#watchEnd();
      return;
    }
    const lingers = hasLongRest(request);
    if (lingers) headers["connection"] = "close";
    response.writeHead(status, headers);
    this.#settle();
    if (!lingers) {
      response.end(text);
      return;
    }
    // The answer goes out whole and the connection closes afterwards: closed at once, with data of the client
    // on its way, it would be reset and the answer could be lost.
    response.write(text);
    discardBody(request, () => response.end());
  }

  #headers(extra: Readonly<Record<string, string>>): Record<string, string | number> {
    const headers: Record<string, string | number> = {
      ...this.dialectHeaders,
      "x-request-id": this.requestId,
    };
    for (const name in extra) {
      if (!RESERVED.test(name)) headers[name] = extra[name] as string;
    }
    return headers;
  }

  #settle(): void {
    this.done = true;
    clearTimeout(this.#deadline);
    this.onDone?.();
  }

  #cancel(): void {
    if (this.done) return;
    this.#settle();
    this.#abort.abort(new LanceError("Cancelled", "the client has gone"));
  }

  #watchEnd(): void {
    const { response } = this;
    if (isHttp2(response)) onStalledEnd(response.stream, this.silenceMs, () => this.breakOff());
  }

  #expire(): void {
    this.cutOff(new LanceError("DeadlineExceeded", "the deadline of the call has passed"));
  }
}
