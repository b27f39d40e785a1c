import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { UpstreamIdentity } from "./identity.ts";

/**
 * What a client is told of an upstream's error. A refusal of the gateway's own credentials is nothing that the client
 * could help: for it the upstream cannot be used.
 */
export function toldToClient<E>(error: E, { isOwn }: UpstreamIdentity): E | LanceError {
  if (isOwn !== true || !isLanceError(error, "Unauthenticated")) return error;
  const text = "the upstream catalog refused the gateway's credentials";
  return new LanceError("ServiceUnavailable", text, { cause: error, instance: error.instance });
}
