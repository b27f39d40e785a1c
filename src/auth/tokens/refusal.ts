import { LanceError } from "../../namespace/errors.ts";

/** Challenge for callers that bring no token (RFC 6750). */
export const CHALLENGE = 'Bearer realm="lance-gateway"';

/**
 * Returns the refusal of a token.
 *
 * @param reason for the caller, without any text of the token.
 */
export function invalidToken(reason: string, cause?: unknown): LanceError {
  const challenge = `${CHALLENGE}, error="invalid_token", error_description="${reason}"`;
  return new LanceError("Unauthenticated", reason, { cause, headers: { "www-authenticate": challenge } });
}
