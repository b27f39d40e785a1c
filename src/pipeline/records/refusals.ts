import type { Logger } from "pino";
import type { Protocol } from "../../namespace/call/call.ts";
import type { ErrorName } from "../../namespace/errors.ts";

/** A request that never became a call; the pipeline has not seen it. */
export interface Refusal {
  /** `http` if no protocol could read the request. */
  readonly protocol: Protocol | "http";
  readonly code: ErrorName;
  readonly requestId?: string | undefined;
  /** Path as it was sent. */
  readonly path?: string | undefined;
  /** Headers of the request, as node has made them, by which its arrival is found. Default: the bytes were not a request. */
  readonly headers?: object | undefined;
  /** Network address from which the connection came, where nothing else names the client. */
  readonly peer?: string | undefined;
  /** The library's name for the fault, such as `HPE_INVALID_METHOD`. */
  readonly fault?: string | undefined;
}

/** Receives every refusal. */
export type NoteRefusal = (refusal: Refusal) => void;

/** Counts refusals. */
export type CountRefusal = (protocol: Refusal["protocol"], code: ErrorName) => void;

const MAX_SEGMENTS = 8;

/** Replaces the parts of a path that the contract does not define: an unreadable request may contain anything. */
export type MaskPath = (path: string) => string;

/** Creates the mask, given the parts of paths that the contract defines. */
export function createMaskPath(known: ReadonlySet<string>): MaskPath {
  return (path) =>
    path
      .split("/", MAX_SEGMENTS)
      .map((segment) => (segment === "" || known.has(segment) ? segment : "*"))
      .join("/");
}

/**
 * Creates the function that logs and counts refusals. The log contains no text of the client except the parts of the
 * path that the contract defines, because an unreadable request may contain anything, even a credential.
 *
 * @param count Default: refusals are only logged.
 */
export function createRefusalNotes(
  log: Logger,
  mask: MaskPath,
  count?: CountRefusal | undefined,
): NoteRefusal {
  return ({ protocol, code, requestId, path, fault }) => {
    // A client that has disconnected was not refused.
    if (code === "Cancelled") return;
    count?.(protocol, code);
    if (!log.isLevelEnabled("debug")) return;
    log.debug(
      { requestId, protocol, code, fault, ...(path !== undefined && { path: mask(path) }) },
      "request refused",
    );
  };
}
