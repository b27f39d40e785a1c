import type { Principal } from "../../namespace/call/principal.ts";
import type { Way } from "../authenticator.ts";
import { principalOf } from "./principal.ts";
import { CHALLENGE, invalidToken } from "./refusal.ts";
import { createVerifiedTokens } from "./verified-tokens.ts";
import { type Verifier, verifierOf, verifyToken } from "./verify.ts";

/** Longest token, in characters: what fits into the headers of a request. */
const MAX_TOKEN_LENGTH = 16 * 1024;

/** Options of {@link proveByTokens}. */
export interface TokenWayOptions {
  readonly verifiers: readonly Verifier[];
  /** Whether upstreams get the tokens, too. Default: false. */
  readonly passesOn?: boolean | undefined;
}

/** Proves callers by bearer tokens that trusted issuers have signed. */
export function proveByTokens({ verifiers, passesOn = false }: TokenWayOptions): Way {
  const byIssuer = new Map(verifiers.map((verifier) => [verifier.issuer.issuer, verifier]));
  const verified = createVerifiedTokens();

  async function verify(token: string, verifier: Verifier): Promise<Principal> {
    const { current } = verifier.keys;
    // Keys that change meanwhile may lack the one of this token.
    const keys = current();
    const claims = await verifyToken(token, verifier);
    const principal = principalOf(token, claims, verifier.issuer);
    if (keys !== undefined) verified.add(token, { principal, expiresAt: claims.exp * 1000, keys, current });
    return principal;
  }

  return {
    needs: "a bearer token, in the header authorization or in the request's identity.auth_token",
    challenge: CHALLENGE,
    isInMessage: true,
    ends: passesOn ? [] : ["authToken"],
    prove({ identity: { authToken } }) {
      if (authToken === undefined) return undefined;
      if (authToken.length > MAX_TOKEN_LENGTH) throw invalidToken("the token is too long");
      return verified.find(authToken) ?? verify(authToken, verifierOf(authToken, byIssuer));
    },
    close() {},
  };
}
