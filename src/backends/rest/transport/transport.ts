import type { Call } from "../../../namespace/call/call.ts";
import type { ByteHold } from "../../../namespace/memory/byte-budget.ts";
import type { Ending } from "../../../runtime/late-signal.ts";

/** A request to an upstream, in terms of HTTP, without its meaning. */
export interface UpstreamRequest {
  readonly method: string;
  /** Path and query, in the form of a request target. */
  readonly target: string;
  /** Names and values in turn, the names in lower case. */
  readonly headers: readonly string[];
  /** A body that can be sent again, or an iterable that can be read once. */
  readonly body: string | AsyncIterable<Uint8Array> | undefined;
  /** Whether the body of a success is delivered piece by piece instead of whole. */
  readonly streams: boolean;
  /**
   * Whether the reader of pieces, when it asks for the third piece or a later one, is done with the pieces before, so
   * that their memory can be freed. Default: never.
   */
  releasesPieces?(): boolean;
  /** Holds the bytes of a body that is collected, also after the answer; a failed request gives back its own. Default: they are not counted. */
  readonly hold?: ByteHold | undefined;
  /** Ends the request; the answer, or its body, fails with its reason. */
  readonly signal: Ending;
  /** Elapsed time of the whole call, in milliseconds. */
  readonly elapsedMs: number;
  /** Whether the request is a readiness probe, for which a connection is reserved. Default: false. */
  readonly isProbe?: boolean;
  /** The call that it is for; callers take turns where requests wait. Default: that of a caller who has no name. */
  readonly call?: Call | undefined;
  /** Called when the request goes out on a connection. Default: not called. */
  readonly onSent?: (() => void) | undefined;
}

/** The answer of an upstream. */
export interface UpstreamResponse {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The whole body, a Buffer or its text; empty if the body is delivered piece by piece. */
  readonly body: { toString(encoding?: "utf8"): string };
  /**
   * Pieces of the body of a success that was requested as a stream. They are not read far ahead of the reader, and
   * leaving early ends the request. It throws UpstreamFailure if the body breaks off.
   */
  readonly pieces: AsyncIterable<Uint8Array> | undefined;
}

/** Sends requests to an address of an upstream, each once. */
export interface UpstreamTransport {
  /** Address to which the target of a request is appended, for example `https://catalog.example.com/lance`. */
  readonly base: string;
  /** @throws UpstreamFailure without a complete answer, or the signal's reason. */
  send(request: UpstreamRequest): Promise<UpstreamResponse>;
  close(): Promise<void>;
}

/** Reasons why a complete answer is missing. */
export type FailureKind =
  /** No connection: refused, unknown host, failed handshake, or too late. The request was not sent. */
  | "connect"
  /** The connection was lost before the answer began. */
  | "reset"
  /** The answer broke off, or had a wrong length. */
  | "truncated"
  /** The head of the answer was late. */
  | "first-byte"
  /** The body of the answer paused for too long. */
  | "idle"
  /** The time for the whole call is over. */
  | "total"
  /** The answer was not HTTP. */
  | "malformed"
  /** The answer was larger than allowed. */
  | "oversized";

/** A request without a complete answer. */
export class UpstreamFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "UpstreamFailure";
    this.kind = kind;
  }
}
