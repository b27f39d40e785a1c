import type { DescMethod } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import type { UpstreamDecision } from "./decisions.ts";
import type { LanceError } from "./errors.ts";
import type { Identifier } from "./identifier.ts";

/** The protocols that a call may arrive by. */
export type Protocol = "grpc" | "grpc-web" | "connect" | "rest";

/** What the address that a request was sent to says. It is the server's own knowledge; no header stands for it. */
export interface RequestAddress {
  /** The host, with or without a port. */
  readonly host: string | undefined;
  /** The database that the path names. */
  readonly database: string | undefined;
}

/** What a wire knows of a call, beside its messages. */
export interface CallInit {
  readonly method: DescMethod;
  readonly protocol: Protocol;
  /** The client's `x-request-id`, or one made here. It is in the log, in errors and in the answer. */
  readonly requestId: string;
  /**
   * Request headers (metadata in gRPC) by lower-case name; several values are joined by ", ". An object of
   * this call's own, without a prototype: the pipeline adds the `header.*` entries of the request's context.
   */
  readonly headers: Record<string, string>;
  /** Default: the address does not count. */
  readonly address?: RequestAddress | undefined;
  /** Aborts when the client has gone or cancelled, or when the deadline has passed. */
  readonly signal: AbortSignal;
  /** When the client stops waiting, in epoch milliseconds. */
  readonly deadline: number | undefined;
  /** The media type that the client asks for in a body that is not JSON; undefined leaves it to the wire. */
  readonly accept: string | undefined;
  readonly log: Logger;
  /**
   * Whether the chunks of the call's body are nobody else's, so that whoever has copied one may take its memory
   * back. Whoever calls an operation with a body of another origin says false. Default: false.
   */
  readonly ownsBody?: boolean;
  /**
   * Whether the wire knows that a body which ends is whole: by its length, or by the chunked coding of HTTP/1.1.
   * Elsewhere a client that goes away may look like one that has finished, and the body has to say that it ends.
   * Default: false.
   */
  readonly hasKnownEnd?: boolean;
  /**
   * Whether the wire, when it asks for the third chunk of the result or a later one, is done with those before, so
   * that their memory can be taken back. Default: false.
   */
  readonly releasesChunks?: boolean;
  /**
   * Ends the call at once, in a way that its client cannot take for the end of the answer: for a call that keeps from
   * others what it does not use. Default: there is no way to.
   */
  readonly cutOff?: (error: LanceError) => void;
}

/** The context of one call: what the wire said of it, and what the pipeline has settled. */
export interface Call extends CallInit {
  /** The object that the call is about, parsed once; empty for the root and for routes without an id. */
  id: Identifier;
  /** The name of the database that the call is for, where there are several. */
  database: string | undefined;
  /** Whether the pipeline has the call, which logs and counts it; what fails before is the wire's to tell. */
  begun?: boolean;
  /** The request's context as the client sent it. */
  context?: Readonly<Record<string, string>> | undefined;
  /** Who calls, as far as the credentials go. */
  identity: Credentials;
  /**
   * Takes memory for what the call's body becomes beyond the bytes that came, in bytes, until it is released.
   *
   * @throws LanceError Throttling
   */
  holdBody: (bytes: number) => void;
  /**
   * Tells that so many bytes of the call's body are no longer held, in bytes; the end of the call tells it of the
   * rest.
   */
  releaseBody: (bytes: number) => void;
  /** Headers of the answer by lower-case name; they also come back in the response's `context`. */
  readonly responseHeaders: Record<string, string>;
  /** Trailers of the answer by lower-case name, for protocols that have them. Default: none. */
  responseTrailers?: Record<string, string>;
  /** What a cache before the backend and the backend tell each other. Default: there is no such cache. */
  readonly validation?: Validation;
  /** What was decided on the way to an upstream, in order. */
  readonly decisions: readonly UpstreamDecision[];
  /** Adds a decision, for the log and for metrics. A copy of the call, with a signal of its own, adds to the same. */
  note(decision: UpstreamDecision): void;
}

/** How a kept answer is brought up to date, and how long one may be kept; the rules are those of RFC 9111. */
export interface Validation {
  /** The entity tag of the answer that is kept; a backend that can asks its upstream whether that still holds. */
  readonly known?: string | undefined;
  /** Set by the backend: it holds, and the answer that came with this is empty. */
  holds?: boolean;
  /** Set by the backend: the entity tag of the answer. */
  etag?: string | undefined;
  /** Set by the backend: the answer's `cache-control`. */
  cacheControl?: string | undefined;
}

/** The credentials of a request, as they were sent. */
export interface Credentials {
  /** The value of `x-api-key`. */
  readonly apiKey: string | undefined;
  /** The token of `Authorization: Bearer …`, without the scheme. */
  readonly authToken: string | undefined;
}

/** The key under which a line of the log has its call, for what must not be in the line; it is not written itself. */
export const OF_CALL: unique symbol = Symbol("call");

/** Begins a call; the pipeline settles what is still open. */
export function createCall(init: CallInit): Call {
  return {
    ...init,
    id: [],
    database: undefined,
    begun: false,
    context: undefined,
    identity: { apiKey: undefined, authToken: undefined },
    holdBody() {},
    releaseBody() {},
    responseHeaders: {},
    decisions: [],
    note,
  };
}

/** One function for all calls, so that beginning one makes none. */
function note(this: { readonly decisions: UpstreamDecision[] }, decision: UpstreamDecision): void {
  this.decisions.push(decision);
}
