/** One request to an upstream, in the words of HTTP. What it means is not known here. */
export interface UpstreamRequest {
  readonly method: string;
  /** The path and the query, in the form of a request target. */
  readonly target: string;
  /** Names and values in turn, the names in lower case. */
  readonly headers: readonly string[];
  /** A body that can be sent again, or an iterable that can be read once. */
  readonly body: string | AsyncIterable<Uint8Array> | undefined;
  /** Whether a body of success is handed over piece by piece, and not whole. */
  readonly streams: boolean;
  /**
   * Whether the reader of pieces, when it asks for the third one or a later one, is done with those before, so that
   * their memory can be taken back. Default: never.
   */
  releasesPieces?(): boolean;
  /** Ends the request; its reason is what the answer, or its body, fails with. */
  readonly signal: AbortSignal;
  /** How much of the time for the whole call is over, in milliseconds. */
  readonly elapsedMs: number;
  /** Whether it asks how the upstream does, for which a connection is kept free. Default: false. */
  readonly isProbe?: boolean;
  /** Told when the request goes out on a connection. Default: nobody is told. */
  readonly onSent?: (() => void) | undefined;
}

/** The answer of an upstream. */
export interface UpstreamResponse {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The whole body, a Buffer or what has its text; empty when it is handed over piece by piece. */
  readonly body: { toString(encoding?: "utf8"): string };
  /**
   * The pieces of a body of success that was asked for as a stream. Nothing is read far ahead of the reader, and
   * leaving it early ends the request. It throws UpstreamFailure when the body breaks off.
   */
  readonly pieces: AsyncIterable<Uint8Array> | undefined;
}

/** Sends requests to one address of an upstream, each once. */
export interface UpstreamTransport {
  /** The address that the target of a request is appended to, for example `https://catalog.example.com/lance`. */
  readonly base: string;
  /**
   * @throws UpstreamFailure when there is no whole answer, or the signal's reason.
   */
  send(request: UpstreamRequest): Promise<UpstreamResponse>;
  close(): Promise<void>;
}

/** Why there is no whole answer. */
export type FailureKind =
  /** No connection: refused, unknown host, no handshake, or not in time. The request was not sent. */
  | "connect"
  /** The connection was lost before the answer began. */
  | "reset"
  /** The answer broke off, or lied about its length. */
  | "truncated"
  /** Its head did not come in time. */
  | "first-byte"
  /** Its body paused for too long. */
  | "idle"
  /** The time for the whole call is over. */
  | "total"
  /** It is no HTTP. */
  | "malformed"
  /** It is larger than allowed. */
  | "oversized";

/** A request that got no whole answer. */
export class UpstreamFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "UpstreamFailure";
    this.kind = kind;
  }
}
