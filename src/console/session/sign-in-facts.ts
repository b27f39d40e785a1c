import type { Issuer } from "./issuer.ts";

/** How the users of a gateway sign in. */
export interface SignInFacts {
  /** Kinds of credentials that the gateway checks. */
  readonly methods: readonly ("api-key" | "token")[];
  /** Whether a call can choose one of several databases. */
  readonly hasDatabases: boolean;
  readonly issuers: readonly Issuer[];
}

/** Asks the gateway how its users sign in. */
export async function readSignInFacts(signal: AbortSignal): Promise<SignInFacts> {
  const response = await fetch("sign-in.json", { signal });
  if (!response.ok) throw new Error(`the ways to sign in cannot be read: ${response.status}`);
  return (await response.json()) as SignInFacts;
}
