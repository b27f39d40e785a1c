import type { Grant } from "../../namespace/call/grants.ts";

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
