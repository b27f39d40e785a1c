import type { DescMethod } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import type { Identifier } from "./identifier.ts";

/** The protocols that a call may arrive by. */
export type Protocol = "grpc" | "grpc-web" | "connect" | "rest";

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
   * Whether the wire, when it asks for the third chunk of the result or a later one, is done with those before, so
   * that their memory can be taken back. Default: false.
   */
  readonly releasesChunks?: boolean;
}

/** The context of one call: what the wire said of it, and what the pipeline has settled. */
export interface Call extends CallInit {
  /** The object that the call is about, parsed once; empty for the root and for routes without an id. */
  id: Identifier;
  /** The name of the database that the call is for, where there are several. */
  database: string | undefined;
  /** Who calls, as far as the credentials go. */
  identity: Credentials;
  /**
   * Tells that so many bytes of the call's body are no longer held, in bytes; the end of the call tells it of the
   * rest.
   */
  releaseBody: (bytes: number) => void;
  /** Headers of the answer by lower-case name; they also come back in the response's `context`. */
  readonly responseHeaders: Record<string, string>;
}

/** The credentials of a request, as they were sent. */
export interface Credentials {
  /** The value of `x-api-key`. */
  readonly apiKey: string | undefined;
  /** The token of `Authorization: Bearer …`, without the scheme. */
  readonly authToken: string | undefined;
}

/** Begins a call; the pipeline settles what is still open. */
export function createCall(init: CallInit): Call {
  return {
    ...init,
    id: [],
    database: undefined,
    identity: { apiKey: undefined, authToken: undefined },
    releaseBody() {},
    responseHeaders: {},
  };
}
