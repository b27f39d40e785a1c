import {
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JSONWebKeySet,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from "jose";
import { pino } from "pino";
import type { TrustedIssuer } from "./issuer.ts";
import { createKeySet, type KeySetOptions } from "./key-set.ts";
import type { Verifier } from "./verify.ts";

export const ISSUER = "https://login.example.com";
export const AUDIENCE = "lance";

/** A key of an issuer. */
export interface SigningKey {
  readonly alg: string;
  readonly privateKey: CryptoKey;
  /** Public key, as the issuer shows it. */
  readonly jwk: JWK;
}

export async function signingKey(kid: string, alg = "ES256"): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } };
}

export function seconds(fromNow = 0): number {
  return Math.floor(Date.now() / 1000) + fromNow;
}

/** Claims of a token that the issuer of {@link trustedIssuer} would give to a caller now. */
export function claims(changes: JWTPayload = {}): JWTPayload {
  return { iss: ISSUER, aud: AUDIENCE, sub: "ann", exp: seconds(600), ...changes };
}

/** Signs a token; changes of the header override what the key says. */
export function sign(
  { alg, privateKey, jwk }: SigningKey,
  payload: JWTPayload = claims(),
  header: Partial<JWTHeaderParameters> = {},
): Promise<string> {
  const kid = jwk.kid as string;
  return new SignJWT(payload).setProtectedHeader({ alg, kid, ...header }).sign(privateKey);
}

/** Joins the parts of a token whose signature may be anything. */
export function forge(header: object, payload: object, signature = ""): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${encode(header)}.${encode(payload)}.${signature}`;
}

export function trustedIssuer(changes: Partial<TrustedIssuer> = {}): TrustedIssuer {
  return {
    ...{ by: "oidc", issuer: ISSUER, audiences: [AUDIENCE], algorithms: ["RS256", "ES256", "EdDSA"] },
    ...{ clockSkewSeconds: 30, requiredClaims: [], nameClaim: "sub", groupsClaim: "groups", prefix: "" },
    grants: [],
    ...changes,
  };
}

/** The keys that an issuer shows, which a test changes, and the number of times that they were fetched. */
export interface ShownKeys {
  keys: readonly SigningKey[];
  fetches: number;
  fetch(): Promise<JSONWebKeySet>;
}

export function shownKeys(...keys: readonly SigningKey[]): ShownKeys {
  return {
    keys,
    fetches: 0,
    async fetch() {
      this.fetches += 1;
      return { keys: this.keys.map(({ jwk }) => jwk) };
    },
  };
}

/** Creates a verifier whose keys come from a test. */
export function verifierWith(
  shown: Pick<ShownKeys, "fetch">,
  issuer: TrustedIssuer = trustedIssuer(),
  options: Partial<KeySetOptions> = {},
): Verifier {
  const log = pino({ level: "silent" });
  const keys = createKeySet({ issuer: issuer.issuer, fetch: () => shown.fetch(), log, ...options });
  return { issuer, keys };
}
