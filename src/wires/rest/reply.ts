import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { RestRequest, RestResponse } from "./http.ts";

/** Body of an answer. */
type ReplyBody = string | Buffer | Readable | undefined;

/** A request and the headers and end of its answer, which Fastify or node sends. */
export interface RestReply {
  readonly request: RestRequest;
  readonly response: RestResponse;
  readonly requestId: string;
  /** Target as the client sent it. */
  readonly target: string;
  /** Whether the answer was sent or taken over. */
  readonly sent: boolean;
  /** Sets a header of the answer; the name is in lower case. */
  setHeader(name: string, value: string): void;
  removeHeader(name: string): void;
  /** Sends the whole answer; undefined is an answer without a body. The length of a stream is a header of the answer. */
  send(status: number, body: ReplyBody): void;
  /** Leaves the answer to the caller; returns the headers that it has. */
  takeOver(): OutgoingHttpHeaders;
}

/** A client that disconnects is noticed by the exchange. */
const ignore = () => {};

/** Fastify adds a charset to JSON unless the reply has a serializer of its own. */
const asItIs = (payload: unknown) => payload as string;

/** Creates the reply to a request of Fastify, whose hooks see the answer. */
export function replyOfFastify(request: FastifyRequest, reply: FastifyReply): RestReply {
  return {
    request: request.raw,
    response: reply.raw,
    requestId: request.id,
    target: request.originalUrl,
    get sent() {
      return reply.sent;
    },
    setHeader: (name, value) => void reply.header(name, value),
    removeHeader: (name) => void reply.removeHeader(name),
    send: (status, body) => void reply.code(status).serializer(asItIs).send(body),
    takeOver() {
      const headers = reply.getHeaders() as OutgoingHttpHeaders;
      reply.hijack();
      return headers;
    },
  };
}

/** The reply to a request of HTTP/1.1 that Fastify does not see. */
export class DirectReply implements RestReply {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  sent = false;
  /** Names and values in turn: node reads them faster than an object, which would be a dictionary. */
  readonly #pairs: string[] = [];

  constructor(request: IncomingMessage, response: ServerResponse, requestId: string) {
    this.request = request;
    this.response = response;
    this.requestId = requestId;
  }

  get target(): string {
    return this.request.url ?? "";
  }

  setHeader(name: string, value: string): void {
    const at = this.#placeOf(name);
    if (at === -1) this.#pairs.push(name, value);
    else this.#pairs[at + 1] = value;
  }

  removeHeader(name: string): void {
    const at = this.#placeOf(name);
    if (at !== -1) this.#pairs.splice(at, 2);
  }

  send(status: number, body: ReplyBody): void {
    const isStream = body instanceof Readable;
    if (!isStream && hasLength(status))
      this.setHeader("content-length", String(body === undefined ? 0 : Buffer.byteLength(body)));
    // It throws for a value that no header can have, and the error is answered then.
    this.response.writeHead(status, this.#pairs);
    this.sent = true;
    if (isStream) pipeline(body, this.response, ignore);
    else this.response.end(body);
  }

  takeOver(): OutgoingHttpHeaders {
    this.sent = true;
    const headers: OutgoingHttpHeaders = {};
    for (let at = 0; at < this.#pairs.length; at += 2)
      headers[this.#pairs[at] as string] = this.#pairs[at + 1];
    return headers;
  }

  #placeOf(name: string): number {
    for (let at = 0; at < this.#pairs.length; at += 2) if (this.#pairs[at] === name) return at;
    return -1;
  }
}

/** Whether an answer of a status has a length (RFC 9110, section 8.6). */
function hasLength(status: number): boolean {
  return status !== 204 && status !== 304;
}
