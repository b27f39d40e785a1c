import type { JWK } from "jose";
import type { Pages } from "../clients/support/issuer.ts";

/** Audience and scope of the tokens that the gateway accepts. */
export const AUDIENCE = "lance";
const SCOPE = "lance.write";

interface Asked {
  readonly oidc: {
    readonly client: { readonly clientId: string };
    readonly session: { readonly accountId: string };
    readonly provider: { readonly Grant: new (facts: object) => Grant };
  };
}

interface Grant {
  addOIDCScope(scope: string): void;
  addResourceScope(resource: string, scope: string): void;
  save(): Promise<string>;
}

/**
 * Returns the configuration of an issuer where people sign in to the console, which is a public client.
 *
 * @param page address of the console.
 */
export const peopleOf = (page: string, keys: readonly JWK[]) => ({
  jwks: { keys },
  clients: [
    {
      ...{ client_id: "console", token_endpoint_auth_method: "none" },
      ...{ redirect_uris: [page], post_logout_redirect_uris: [page] },
    },
  ],
  clientBasedCORS: (_context: unknown, origin: string) => origin === new URL(page).origin,
  cookies: { keys: ["a secret of the test"] },
  scopes: ["openid", SCOPE],
  findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
  interactions: { url: () => "/people" },
  // Without a grant, the provider would ask each person for consent.
  async loadExistingGrant({ oidc: { client, session, provider } }: Asked): Promise<Grant> {
    const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope(`openid ${SCOPE}`);
    grant.addResourceScope("urn:lance", SCOPE);
    await grant.save();
    return grant;
  },
  features: {
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => "urn:lance",
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        ...{ scope: SCOPE, audience: AUDIENCE, accessTokenFormat: "jwt", accessTokenTTL: 600 },
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
});

/** The page of the issuer on which Ann signs in. */
export const annsPage: Pages = async (provider, request, response) => {
  if (request.url !== "/people") return false;
  if (request.method === "POST")
    await provider.interactionFinished(request, response, { login: { accountId: "ann" } });
  else
    response
      .setHeader("content-type", "text/html")
      .end('<!doctype html><title>Issuer</title><form method="post"><button>I am Ann</button></form>');
  return true;
};
