import type { Principal } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import { parseIdentifier } from "../../namespace/identifier.ts";
import type { Way } from "../authenticator.ts";
import type { KeyRecord } from "./key-file.ts";
import type { KeyRefusal, KeyRing } from "./key-ring.ts";

/** The scheme has no registered name; RFC 9110 wants one in every 401. */
const CHALLENGE = 'ApiKey realm="lance-gateway"';

const REASONS: Readonly<Record<KeyRefusal, string>> = {
  unknown: "the gateway does not know the API key",
  expired: "the API key has expired",
};

/** Proves callers by the keys of a file. */
export function proveByKeys(keys: KeyRing): Way {
  const principals = new WeakMap<KeyRecord, Principal>();

  /** Returns the same object for each call of a caller, so that others remember by it what they know of the caller. */
  function principalOf(record: KeyRecord): Principal {
    const known = principals.get(record);
    if (known !== undefined) return known;
    const { name, id: credentialId, role, groups = [] } = record;
    const scope = record.scope?.map((object) => parseIdentifier(object));
    const claims = {};
    const principal: Principal = {
      by: "api-key",
      name,
      credentialId,
      role,
      groups,
      claims,
      ...(scope && { scope }),
    };
    principals.set(record, principal);
    return principal;
  }

  return {
    needs: "an API key, in the header x-api-key or in the request's identity.api_key",
    challenge: CHALLENGE,
    isInMessage: true,
    ends: ["apiKey"],
    prove({ identity: { apiKey } }) {
      if (apiKey === undefined) return undefined;
      const found = keys.find(apiKey);
      if (typeof found === "string") {
        const headers = { "www-authenticate": CHALLENGE };
        throw new LanceError("Unauthenticated", REASONS[found], { headers });
      }
      return principalOf(found);
    },
    close: keys.close,
  };
}
