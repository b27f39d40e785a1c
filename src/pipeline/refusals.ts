import type { Logger } from "pino";
import type { Protocol } from "../namespace/call.ts";
import type { ErrorName } from "../namespace/errors.ts";

/** A request that never became a call: nothing of the pipeline has seen it. */
export interface Refusal {
  /** `http` where the request is none that any protocol could read. */
  readonly protocol: Protocol | "http";
  readonly code: ErrorName;
  readonly requestId?: string | undefined;
  /** The path as it was sent. */
  readonly path?: string | undefined;
  /** What a library calls the fault, such as `HPE_INVALID_METHOD`. */
  readonly fault?: string | undefined;
}

/** Is told of every refusal. */
export type NoteRefusal = (refusal: Refusal) => void;

/** Counts refusals. */
export type CountRefusal = (protocol: Refusal["protocol"], code: ErrorName) => void;

const MAX_SEGMENTS = 8;

/**
 * Creates what logs and counts refusals. The log has nothing that the client wrote but the parts of the path that the
 * contract knows, because what cannot be read may be anything, a credential too.
 *
 * @param known the parts of paths that the contract knows.
 * @param count Default: they are only logged.
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
    // Whoever has left was not refused.
    if (code === "Cancelled") return;
    count?.(protocol, code);
    if (!log.isLevelEnabled("debug")) return;
    log.debug(
      { requestId, protocol, code, fault, ...(path !== undefined && { path: masked(path) }) },
      "request refused",
    );
  };
}
