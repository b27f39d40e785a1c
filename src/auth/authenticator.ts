import type { Credentials } from "../namespace/call.ts";
import { LanceError } from "../namespace/errors.ts";
import type { Principal } from "../namespace/principal.ts";
import type { KeyRefusal, KeyRing } from "./api-keys/key-ring.ts";
import { createFailureDelay } from "./failure-delay.ts";

/** Proves who a caller is. */
export interface Authenticator {
  /**
   * Returns the caller that credentials prove.
   *
   * @throws LanceError Unauthenticated
   */
  authenticate(credentials: Credentials): Principal;
  /** Counts wrong credentials from an address, and returns how long their refusal has to wait, in milliseconds. */
  failed(address: string | undefined): number;
  close(): void;
}

/** The scheme has no registered name; RFC 9110 wants one in every 401. */
const CHALLENGE = { headers: { "www-authenticate": 'ApiKey realm="lance-gateway"' } };

const REASONS: Readonly<Record<KeyRefusal | "missing", string>> = {
  missing: "the gateway needs an API key, in the header x-api-key or in the request's identity.api_key",
  unknown: "the gateway does not know the API key",
  expired: "the API key has expired",
};

/**
 * Creates an authenticator by the keys of a file.
 *
 * @param delay Default: that of {@link createFailureDelay}.
 */
export function authenticateByKeys(keys: KeyRing, delay = createFailureDelay()): Authenticator {
  return {
    authenticate({ apiKey }) {
      const found = apiKey === undefined ? "missing" : keys.find(apiKey);
      if (typeof found === "string") throw new LanceError("Unauthenticated", REASONS[found], CHALLENGE);
      const { name, id: credentialId, role } = found;
      return { by: "api-key", name, credentialId, role, groups: [], claims: {} };
    },
    failed: delay.failed,
    close: keys.close,
  };
}
