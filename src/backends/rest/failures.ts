import { LanceError } from "../../namespace/errors.ts";
import { errors } from "../../runtime/internals/undici.ts";
import { type FailureKind, UpstreamFailure } from "./transport/transport.ts";

/** How far a request came before it failed. */
export interface Progress {
  /** Whether it had a connection. */
  readonly sent: boolean;
  /** Whether the answer had started. */
  readonly begun: boolean;
}

const KINDS: Readonly<Record<string, FailureKind>> = {
  UND_ERR_CONNECT_TIMEOUT: "connect",
  UND_ERR_HEADERS_TIMEOUT: "first-byte",
  UND_ERR_BODY_TIMEOUT: "idle",
  UND_ERR_HEADERS_OVERFLOW: "malformed",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "truncated",
};

const TEXTS: Readonly<Record<FailureKind, string>> = {
  connect: "the upstream catalog cannot be reached",
  reset: "the upstream catalog closed the connection before it answered",
  truncated: "the answer of the upstream catalog broke off",
  "first-byte": "the upstream catalog did not answer in time",
  idle: "the upstream catalog stopped in the middle of its answer",
  total: "the upstream catalog did not answer in time",
  malformed: "the answer of the upstream catalog is no HTTP",
  oversized: "the answer of the upstream catalog is too large",
};

/**
 * Returns the failure for an error of the connection; errors of the gateway's own side pass unchanged.
 *
 * Its message, which clients may see, contains no addresses; the cause does.
 */
export function failureOf(error: Error, { sent, begun }: Progress): unknown {
  if (error instanceof LanceError || error instanceof UpstreamFailure) return error;
  const { code = "" } = error as { code?: unknown };
  return failureOfKind(KINDS[String(code)] ?? kindByProgress(error, sent, begun), error);
}

/** Returns the failure of a kind, with a text for clients. */
export function failureOfKind(kind: FailureKind, cause?: Error): UpstreamFailure {
  return new UpstreamFailure(kind, TEXTS[kind], cause);
}

function kindByProgress(error: Error, sent: boolean, begun: boolean): FailureKind {
  if (!sent) return "connect";
  if (error instanceof errors.HTTPParserError) return "malformed";
  return begun ? "truncated" : "reset";
}
