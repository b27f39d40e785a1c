import { decodeJwt, errors, type JWTPayload, jwtVerify } from "jose";
import type { Grant } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { KeySet } from "./key-set.ts";

/** An issuer with its keys. */
export interface Verifier {
  readonly issuer: TrustedIssuer;
  readonly keys: KeySet;
}

/** Claims of a token that {@link verifyToken} has verified. */
export type VerifiedClaims = JWTPayload & { readonly exp: number };

/**
 * Returns the issuer that a token claims to come from. The claim only chooses among the issuers of the configuration.
 *
 * @throws LanceError Unauthenticated
 */
export function verifierOf(token: string, verifiers: ReadonlyMap<string, Verifier>): Verifier {
  const found = verifiers.get(String(claimedIssuer(token)));
  if (found === undefined)
    throw invalidToken("the token comes from an issuer that the gateway does not know");
  return found;
}

function claimedIssuer(token: string): unknown {
  try {
    return decodeJwt(token).iss;
  } catch (cause) {
    throw invalidToken("the token is not a signed JSON Web Token", cause);
  }
}

/**
 * Verifies the signature, the times, the issuer and the audience of a token.
 *
 * @throws LanceError Unauthenticated, or ServiceUnavailable if the issuer's keys cannot be fetched.
 */
export async function verifyToken(token: string, { issuer, keys }: Verifier): Promise<VerifiedClaims> {
  try {
    const { payload, protectedHeader } = await jwtVerify(token, (header) => keys.find(header), {
      issuer: issuer.issuer,
      audience: [...issuer.audiences],
      algorithms: [...issuer.algorithms],
      clockTolerance: issuer.clockSkewSeconds,
      requiredClaims: ["exp"],
    });
    checkKind(protectedHeader.typ, payload);
    return payload as VerifiedClaims;
  } catch (thrown) {
    throw thrown instanceof LanceError ? thrown : invalidToken(reasonOf(thrown), thrown);
  }
}

/** Types of tokens that a caller may bring (RFC 7519, RFC 9068); media types may lack their prefix. */
const ACCESS_TOKEN_TYPES: ReadonlySet<string> = new Set(["jwt", "at+jwt"]);

/** Refuses what the issuer has signed for another purpose, and tokens that prove nothing without their client's key. */
function checkKind(type: string | undefined, { cnf }: JWTPayload): void {
  const name = type?.toLowerCase().replace(/^application\//, "") ?? "jwt";
  if (!ACCESS_TOKEN_TYPES.has(name)) throw invalidToken("the token is of a type other than JWT and at+jwt");
  if (cnf !== undefined)
    throw invalidToken("the token is bound to a key of its client (cnf), and is not a bearer token");
}

const CLAIM_REASONS: Readonly<Record<string, string>> = {
  aud: "the token is for another audience",
  nbf: "the token is not valid yet",
  exp: "the token does not say when it expires",
};

function reasonOf(thrown: unknown): string {
  if (thrown instanceof errors.JWTExpired) return "the token has expired";
  if (thrown instanceof errors.JOSEAlgNotAllowed)
    return "the token is signed by an algorithm that is not allowed";
  const claim = thrown instanceof errors.JWTClaimValidationFailed ? CLAIM_REASONS[thrown.claim] : undefined;
  return claim ?? "the token is not valid";
}

/** An issuer whose tokens the gateway accepts, and what it reads in them. */
export interface TrustedIssuer {
  /** Way that principals name. */
  readonly by: "oidc" | "kubernetes";
  /** Value of the claim `iss`, to the letter. */
  readonly issuer: string;
  /** Values of the claim `aud`, of which a token must have one. */
  readonly audiences: readonly string[];
  /** Algorithms by which its tokens may be signed; none of them may have a secret that the verifier knows, too. */
  readonly algorithms: readonly string[];
  /** Difference of the clocks that is tolerated, in seconds. */
  readonly clockSkewSeconds: number;
  /** Claims that a token must have, each with a value that it must be or contain. */
  readonly requiredClaims: readonly (readonly [name: string, value: string])[];
  /** Claim with the name of the caller. */
  readonly nameClaim: string;
  /** Claim with the groups of the caller; dots lead into objects. */
  readonly groupsClaim: string;
  /** Text before names and groups, which tells issuers apart. */
  readonly prefix: string;
  readonly grants: readonly Grant[];
}

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
