import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { UpstreamIdentity } from "./identity.ts";

/**
 * Returns the error that a client gets for an upstream's error. A client cannot fix a refusal of the gateway's own
 * credentials, so it gets ServiceUnavailable.
 */
export function toldToClient<E>(
  error: E,
  { isOwn }: UpstreamIdentity,
  isRefusal = isLanceError(error, "Unauthenticated"),
): E | LanceError {
  if (isOwn !== true || !isRefusal) return error;
  const text = "the upstream catalog refused the gateway's credentials";
  const instance = error instanceof LanceError ? error.instance : undefined;
  return new LanceError("ServiceUnavailable", text, { cause: error, instance });
}
