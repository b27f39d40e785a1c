import {
  type OutgoingHttpHeaders,
  type ServerResponse,
  validateHeaderName,
  validateHeaderValue,
} from "node:http";
import { constants } from "node:http2";
import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { type Dialect, type ErrorForm, errorForm } from "../../dialects/dialect.ts";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { bytesIn } from "../../runtime/byte-memory.ts";
import { LateSignal } from "../../runtime/late-signal.ts";
import type { JsonPieces } from "../../transcode/json/encode-steps.ts";
import { type Deadline, startDeadline } from "../deadline.ts";
import { stopReading } from "../grpc/server-call.ts";
import { DEFAULT_SILENCE_MS, onStalledEnd, takenBody } from "../limits.ts";
import { BodyWriter } from "./body-writer.ts";
import {
  connectionOf,
  discardBody,
  errorText,
  hasLongRest,
  isHttp2,
  knownError,
  type RestRequest,
  type RestResponse,
  splitTarget,
} from "./http.ts";

/** Headers that belong to the wire or the connection; a call cannot set them. */
const RESERVED =
  /^(?::.*|content-length|te|trailer|connection|keep-alive|proxy-connection|transfer-encoding|upgrade|x-request-id)$/;

type Headers = Readonly<Record<string, string>>;

const ignore = () => {};

/** Fastify adds a charset to JSON unless the reply has a serializer of its own. */
const asItIs = (payload: unknown) => payload as string;

/** Length from which a text becomes bytes once, instead of for its length and again for each write. */
export const LONG_TEXT = 256 * 1024;

/**
 * A request and its answer, over HTTP/1.1 or HTTP/2, and everything that can interrupt it. Fastify sends the answer,
 * except where it cannot: before the end of the request's body, piece by piece, and in a way that breaks off.
 *
 * The exchange is done exactly once: when its answer is handed over, or when the client disconnects. From then on
 * nothing more is sent.
 */
export class Exchange {
  readonly request: RestRequest;
  readonly response: RestResponse;
  readonly requestId: string;
  /** Path as it was sent. */
  readonly path: string;
  /** Query as it was sent, without its question mark. */
  readonly query: string;
  readonly log: Logger;
  /** The call that the request has become. */
  call: Call | undefined;
  /** Headers of the answer, read when the answer starts. */
  responseHeaders: Headers = {};
  /** Dialect of the client. Default: not known yet. */
  dialect: Dialect | undefined;
  /**
   * Longest time in which a client of HTTP/2 reads nothing of the answer, in milliseconds; 0 for no limit. Over
   * HTTP/1.1 the connection has this limit.
   */
  silenceMs = DEFAULT_SILENCE_MS;
  done = false;
  /** Called once, when the exchange is done in any way. */
  onDone: (() => void) | undefined;
  readonly #reply: FastifyReply;
  /** Aborts, with a LanceError as its reason, when the client disconnects or the deadline expires. */
  readonly ending = new LateSignal();
  #deadline: Deadline | undefined;
  #body: BodyWriter | undefined;

  constructor(request: FastifyRequest, reply: FastifyReply, log: Logger) {
    const { path, query } = splitTarget(request.originalUrl);
    this.request = request.raw;
    this.response = reply.raw;
    this.requestId = request.id;
    this.path = path;
    this.query = query;
    this.log = log;
    this.#reply = reply;
    // A lost connection is an error event to node; only the "close" that follows it matters here.
    if (this.request.listenerCount("error") === 0) this.request.on("error", ignore);
    if (this.response.listenerCount("error") === 0) this.response.on("error", ignore);
    this.response.on("close", () => this.#cancel());
    if (isHttp2(this.response) ? this.response.stream.destroyed : this.response.destroyed) this.#cancel();
  }

  /** Whether the answer is handed over, so that nothing else can answer. */
  get sent(): boolean {
    return this.#reply.sent;
  }

  /** Identity of the exchange's connection. */
  get connection(): object | undefined {
    return connectionOf(this.response);
  }

  /** Answers DeadlineExceeded unless the exchange is done in time. */
  expireIn(milliseconds: number): void {
    this.#deadline = startDeadline(milliseconds, (error) => this.cutOff(error));
  }

  /** Sends a whole answer. Without a content type it has no body. */
  answer(status: number, contentType: string | undefined, body: JsonPieces): void {
    if (this.done) return;
    this.#send(status, contentType, body, this.responseHeaders);
  }

  /**
   * Sends the head of an answer whose body is written piece by piece.
   *
   * @param bytes size of the body, if it is known
   */
  begin(status: number, contentType: string, bytes?: number): void {
    if (this.done) return;
    this.#setHeaders(this.responseHeaders);
    this.#writeHead(status, {
      "content-type": contentType,
      ...(bytes !== undefined && { "content-length": bytes }),
    });
    this.#body = new BodyWriter(this.response, this.silenceMs, (error) => this.cutOff(error));
  }

  /** Sends a piece of the body, as {@link BodyWriter.write} does; does nothing once the exchange is done. */
  async write(piece: Uint8Array): Promise<void> {
    if (!this.done) await this.#body?.write(piece);
  }

  /** Ends a body that was written piece by piece. */
  finish(): void {
    if (this.done) return;
    this.#settle();
    this.response.end();
    this.#watchEnd();
  }

  /**
   * Answers with the error of a thrown value, and logs what clients must not see. After the head has gone, it breaks
   * off the connection or the stream, so that the client cannot mistake the part for the whole.
   */
  fail(thrown: unknown): void {
    if (this.done) return;
    const error = knownError(thrown);
    if (error.kind === "Internal" && error !== thrown) {
      this.log.error({ err: thrown, requestId: this.requestId }, "REST call failed with an unknown error");
      // These headers may have failed themselves, for example by a line break.
      for (const name in this.responseHeaders) this.#reply.removeHeader(name);
      this.responseHeaders = {};
    }
    if (this.response.headersSent) this.breakOff();
    else this.#answerError(error);
  }

  /** Ends the exchange in a way that no client mistakes for a regular end. */
  breakOff(): void {
    this.#settle();
    this.#reply.hijack();
    const { response } = this;
    if (isHttp2(response)) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    else response.destroy();
  }

  /** Fails, and notifies the code that still works on the answer. */
  cutOff(error: LanceError): void {
    if (this.done) return;
    this.fail(error);
    this.ending.abort(error);
  }

  #answerError(error: LanceError): void {
    const form = this.#formOf(error);
    const status = form?.status ?? error.entry.httpStatus;
    const reported = form?.text === undefined ? error : new LanceError(error.kind, form.text);
    const text = errorText(reported, status, this.path);
    try {
      this.#send(status, "application/json", text, { ...this.responseHeaders, ...error.headers });
    } catch (cause) {
      this.log.error({ err: cause, requestId: this.requestId }, "the headers of an error cannot be sent");
      this.breakOff();
    }
  }

  /** No function of each call, because it costs the collector much (docs/adr/0028). */
  #formOf({ entry }: LanceError): ErrorForm | undefined {
    const { call, dialect } = this;
    return call && dialect && errorForm(dialect, entry.name, call.method.input.typeName);
  }

  #send(status: number, contentType: string | undefined, body: JsonPieces, extra: Headers): void {
    const { request, response } = this;
    this.#setHeaders(extra);
    if (contentType !== undefined) this.#reply.header("content-type", contentType);
    if (!isHttp2(response) && hasLongRest(request)) {
      this.#sendEarly(status, wholeOf(body));
      return;
    }
    if (this.#reply.sent) {
      this.#sendTakenOver(status, wholeOf(body));
      return;
    }
    const reply = this.#reply.code(status).serializer(asItIs);
    if (typeof body !== "string") reply.send(this.#streamOf(body));
    else if (contentType === undefined) reply.send();
    else reply.send(body.length > LONG_TEXT ? Buffer.from(body) : body);
    this.#settle();
    if (!isHttp2(response)) return;
    stopReading(response.stream);
    this.#watchEnd();
  }

  /** Returns the stream of an answer in pieces, whose length it announces. */
  #streamOf(pieces: readonly Buffer[]): Readable {
    this.#reply.header("content-length", String(bytesIn(pieces)));
    const silenceMs = isHttp2(this.response) ? this.silenceMs : 0;
    const taken = takenBody(pieces, silenceMs, () => this.breakOff());
    return Readable.from(taken, { highWaterMark: 1 }).on("end", () => this.#watchEnd());
  }

  /**
   * Sends the whole answer and closes the connection afterwards. Closed at once, with data of the client in transit,
   * it would be reset and the answer could be lost.
   */
  #sendEarly(status: number, text: string | Buffer): void {
    this.#writeHead(status, { "content-length": Buffer.byteLength(text), connection: "close" });
    this.#settle();
    (this.response as ServerResponse).write(text);
    discardBody(this.request, () => this.response.end());
  }

  /** Sends an error in place of a head that could not be sent: Fastify does not answer what it has handed over. */
  #sendTakenOver(status: number, text: string | Buffer): void {
    this.#writeHead(status, { "content-length": Buffer.byteLength(text) });
    this.#settle();
    this.response.end(text);
    this.#watchEnd();
  }

  /** Takes the answer over, with the headers that it has. */
  #writeHead(status: number, own: Readonly<Record<string, string | number>>): void {
    const headers = { ...this.#reply.getHeaders(), ...own } as OutgoingHttpHeaders;
    this.#reply.hijack();
    (this.response as ServerResponse).writeHead(status, headers);
  }

  #setHeaders(extra: Headers): void {
    const reply = this.#reply;
    const own = this.dialect?.headers;
    for (const name in own) reply.header(name, own[name]);
    reply.header("x-request-id", this.requestId);
    for (const name in extra) {
      if (RESERVED.test(name)) continue;
      const value = extra[name] as string;
      // Node would refuse it only after asynchronous hooks of an application, where Fastify loses the error.
      validateHeaderName(name);
      validateHeaderValue(name, value);
      reply.header(name, value);
    }
  }

  #settle(): void {
    this.done = true;
    this.#deadline?.clear();
    this.onDone?.();
  }

  #cancel(): void {
    if (this.done) return;
    this.#settle();
    this.#reply.hijack();
    this.ending.abort(new LanceError("Cancelled", "the client disconnected"));
  }

  #watchEnd(): void {
    const { response } = this;
    if (isHttp2(response)) onStalledEnd(response.stream, this.silenceMs, () => this.breakOff());
  }
}

function wholeOf(body: JsonPieces): string | Buffer {
  return typeof body === "string" ? body : Buffer.concat(body);
}
