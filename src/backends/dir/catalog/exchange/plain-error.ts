import { LanceError } from "../../../../namespace/errors.ts";
import { UnsyncedError } from "../../format/local/local-errors.ts";
import type { PlainError } from "./messages.ts";

/** Returns an error as data that another thread can receive. */
export function toPlain(error: unknown): PlainError {
  const known = error instanceof LanceError ? error : undefined;
  return {
    kind: known?.kind,
    message: error instanceof Error ? error.message : String(error),
    stack: error instanceof Error ? error.stack : undefined,
    headers: known?.headers ?? {},
    limit: known?.limit,
    isUnsynced: error instanceof UnsyncedError,
  };
}

/** Returns the error of {@link toPlain}; its cause is the error in the other thread. */
export function fromPlain({ kind, message, stack, headers, limit, isUnsynced }: PlainError): Error {
  const cause = Object.assign(new Error(message), stack !== undefined && { stack });
  if (isUnsynced) return new UnsyncedError(cause);
  return kind === undefined ? cause : new LanceError(kind, message, { headers, limit, cause });
}
