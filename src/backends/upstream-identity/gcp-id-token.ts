import { loadLibrary } from "../load-library.ts";
import type { GcpIdentityOptions, UpstreamIdentity } from "./identity.ts";
import { createRenewedIdentity } from "./token-cache.ts";

const USER = "the upstream identity gcp-id-token";

/**
 * The token belongs to an audience and not to a project. Without a value, the library starts `gcloud` to find one,
 * which takes seconds.
 */
const NO_PROJECT = "none";

/**
 * Creates an identity with tokens of the gateway's Google service account, which the library finds as Google's tools
 * do: a key file, a workload identity, or the metadata server of the machine.
 *
 * @throws Error with a single line for a missing package.
 */
export async function createGcpIdentity({
  audience,
  renewBeforeMs,
}: GcpIdentityOptions): Promise<UpstreamIdentity> {
  const { GoogleAuth } = await loadLibrary(USER, "google-auth-library", () => import("google-auth-library"));
  const auth = new GoogleAuth({ projectId: NO_PROJECT });
  return createRenewedIdentity({
    name: "Google identity token",
    renewBeforeMs,
    async fetch() {
      const { idTokenProvider } = await auth.getIdTokenClient(audience);
      const token = await idTokenProvider.fetchIdToken(audience);
      return { value: { authorization: `Bearer ${token}` }, expiresAt: endOf(token) };
    },
  });
}

/** Returns the expiry of a token, in epoch milliseconds. */
function endOf(token: string): number {
  const claims: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  const { exp } = claims as { exp?: unknown };
  if (typeof exp !== "number") throw new Error("the identity token does not say when it ends");
  return exp * 1000;
}
