import { hash } from "node:crypto";
import type { Call } from "../../namespace/call/call.ts";

/**
 * Returns the idempotency key for an upstream to which all callers may be the gateway: the same text of another caller is another key.
 * Apart from the other headers, because clients in browsers have those, and no callers.
 */
export function keyOfCaller(key: string, { principal }: Call): string {
  if (principal === undefined) return key;
  return hash("sha256", JSON.stringify([principal.by, principal.name, key]));
}
