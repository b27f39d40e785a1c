import { hash } from "node:crypto";
import type { Call } from "./call.ts";

/**
 * Returns a text that is equal for all calls of a caller, wherever they come from. Calls of callers whom the gateway does not know belong together
 * if they carry the same credentials.
 */
export function ownerKey({ principal, identity }: Pick<Call, "principal" | "identity">): string {
  if (principal !== undefined) return JSON.stringify([principal.by, principal.name]);
  return hash("sha256", JSON.stringify([identity.apiKey ?? null, identity.authToken ?? null]), "base64url");
}
