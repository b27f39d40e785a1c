import type { Logger } from "pino";
import type { Protocol } from "../namespace/call.ts";
import type { ErrorName } from "../namespace/errors.ts";

/** A request that never became a call; the pipeline has not seen it. */
export interface Refusal {
  /** `http` if no protocol could read the request. */
  readonly protocol: Protocol | "http";
  readonly code: ErrorName;
  readonly requestId?: string | undefined;
  /** Path as it was sent. */
  readonly path?: string | undefined;
  /** The library's name for the fault, such as `HPE_INVALID_METHOD`. */
  readonly fault?: string | undefined;
}

/** Receives every refusal. */
export type NoteRefusal = (refusal: Refusal) => void;

/** Counts refusals. */
export type CountRefusal = (protocol: Refusal["protocol"], code: ErrorName) => void;

const MAX_SEGMENTS = 8;

/**
 * Creates the function that logs and counts refusals. The log contains no text of the client except the parts of the
 * path that the contract defines, because an unreadable request may contain anything, even a credential.
 *
 * @param known the parts of paths that the contract defines.
 * @param count Default: refusals are only logged.
 */
export function createRefusalNotes(
  log: Logger,
  known: ReadonlySet<string>,
  count?: CountRefusal | undefined,
): NoteRefusal {
  const masked = (path: string) =>
    path
      .split("/", MAX_SEGMENTS)
      .map((segment) => (segment === "" || known.has(segment) ? segment : "*"))
      .join("/");

  return ({ protocol, code, requestId, path, fault }) => {
    // A client that has disconnected was not refused.
    if (code === "Cancelled") return;
    count?.(protocol, code);
    if (!log.isLevelEnabled("debug")) return;
    log.debug(
      { requestId, protocol, code, fault, ...(path !== undefined && { path: masked(path) }) },
      "request refused",
    );
  };
}
