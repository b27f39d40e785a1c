import type { IncomingMessage, ServerResponse } from "node:http";
import { constants } from "node:http2";
import { Code, ConnectError, createContextKey, createContextValues } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import type { Call } from "../../namespace/call/call.ts";
import type { Reception } from "../../namespace/call/reception.ts";
import type { ErrorName, LanceError } from "../../namespace/errors.ts";
import type { ByteHold } from "../../namespace/memory/byte-budget.ts";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { changeWriteErrors } from "../../runtime/internals/stream-methods.ts";
import { stopReading } from "../grpc/server-call.ts";
import { discardBody, isGone, isHttp2, withoutQuery } from "../rest/http.ts";

/** Refusals by the library itself, by the status of its answer. */
const REFUSALS: ReadonlyMap<number, ErrorName> = new Map<number, ErrorName>([
  [405, "MethodNotAllowed"],
  [415, "UnsupportedMediaType"],
  [429, "Throttling"],
  [504, "DeadlineExceeded"],
]);

/** Context of an exchange, in addition to the request and the reply. */
export interface ConnectExchangeOptions {
  readonly log: Logger;
  /** Bytes of the request that are kept. */
  readonly hold: ByteHold;
  /** Called for requests that fail before they become a call. */
  readonly refused?: NoteRefusal | undefined;
  /** The error that answers the request whatever it contains. */
  readonly refusal?: LanceError | undefined;
  /** Name of the method that its route has found. Default: none, because the request gets a refusal. */
  readonly method?: string | undefined;
}

/** A request of Connect or gRPC-Web and its answer, in addition to the library's handling of both. */
export class ConnectExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly path: string;
  readonly hold: ByteHold;
  readonly refusal: LanceError | undefined;
  /** Name of the method that its route has found. */
  readonly method: string | undefined;
  /** The caller as known before the message is read. */
  reception: Reception | undefined;
  /** The call that the request has become. */
  call: Call | undefined;
  /** The encoded message of a long answer, which the library has not got. */
  message: readonly Uint8Array[] | undefined;
  readonly #reply: FastifyReply;
  readonly #log: Logger;

  constructor(request: FastifyRequest, reply: FastifyReply, options: ConnectExchangeOptions) {
    this.request = request.raw;
    this.response = reply.raw;
    this.requestId = request.id;
    this.path = withoutQuery(request.originalUrl);
    this.hold = options.hold;
    this.refusal = options.refusal;
    this.method = options.method;
    this.#reply = reply;
    this.#log = options.log;
    reply.header("x-request-id", this.requestId);
    this.#watch(options.refused);
    this.#explainErrors();
  }

  /** Whether nothing more of an answer can be sent. */
  get isGone(): boolean {
    return isGone(this.response);
  }

  /** Ends the answer in a way that the client notices; the library does not. */
  breakOff(error: unknown): void {
    const { response, requestId } = this;
    this.#log.debug({ err: error, requestId }, "the exchange with the client broke off");
    this.#reply.hijack();
    // A destroyed stream would end without an error for the client.
    if (isHttp2(response)) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    else response.destroy();
  }

  #watch(refused: NoteRefusal | undefined): void {
    const { request, response } = this;
    response.on("finish", () => {
      if (this.call === undefined) this.#noteRefusal(refused);
      // Over HTTP/1.1 the rest of a refused body precedes the next request.
      if (!isHttp2(response) && !request.complete)
        discardBody(request, () => request.complete || request.destroy());
    });
    // The response finishes only when the stream closes, so a client that continues to send must be told to stop.
    if (isHttp2(response)) response.stream.on("finish", () => stopReading(response.stream));
    // A write over HTTP/2 that waits for its reader gets neither "drain" nor an error when the reader leaves. This
    // event comes after the call's own signal, which knows the reason.
    response.on("close", () => {
      if (!response.writableEnded) setImmediate(() => response.emit("error", clientLeft()));
    });
  }

  /**
   * Tells the library that an answer cannot be written because the client has disconnected. The library writes any
   * other error of Node to the console.
   */
  #explainErrors(): void {
    const { response } = this;
    response.on("error", (error) => {
      error.cause ??= clientLeft();
    });
    changeWriteErrors(response, brokenOff);
  }

  #noteRefusal(refused: NoteRefusal | undefined): void {
    const { requestId, path } = this;
    const isGrpcWeb = this.request.headers["content-type"]?.startsWith("application/grpc-web") === true;
    const code = this.refusal?.kind ?? REFUSALS.get(this.response.statusCode) ?? "InvalidInput";
    const { headers } = this.request;
    refused?.({ protocol: isGrpcWeb ? "grpc-web" : "connect", code, requestId, path, headers });
  }
}

/**
 * Returns the error of a write to a disconnected client, with the code by which the library recognises that it need
 * not be reported.
 */
function clientLeft(): Error {
  return Object.assign(new Error("the client left"), { code: "ECONNRESET" });
}

/** Context that the library passes through to the implementation of an rpc. */
export const EXCHANGE = createContextKey<ConnectExchange | undefined>(undefined, { description: "exchange" });

/** Returns the context values of a request with an exchange. */
export function contextOf(exchange: ConnectExchange) {
  return createContextValues().set(EXCHANGE, exchange);
}

/** Returns the error of an exchange that is already broken off, which the library does not report again. */
export function brokenOff(cause: unknown): ConnectError {
  return new ConnectError("the exchange broke off", Code.Aborted, undefined, undefined, cause);
}
