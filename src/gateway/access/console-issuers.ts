import type { ServeOptions } from "../../config/options/groups.ts";
import type { ConsoleIssuer, ConsoleSignIn } from "../../server/app/console-pages.ts";

/** Options that say where the console signs in. */
type SignInOptions = Partial<Pick<ServeOptions, "oidcIssuers" | "consoleOidcClientId" | "consoleOidcScope">>;

/** Returns the issuers of tokens that have the console as a client. */
export function consoleIssuersOf({
  oidcIssuers = [],
  consoleOidcClientId,
  consoleOidcScope = "openid",
}: SignInOptions): readonly ConsoleIssuer[] {
  return oidcIssuers.flatMap(
    ({ issuer, consoleClientId: clientId = consoleOidcClientId, consoleScope: scope = consoleOidcScope }) =>
      clientId === undefined ? [] : [{ issuer, clientId, scope }],
  );
}

/** Returns how callers of a gateway sign in by the console. */
export function consoleSignInOf(
  options: SignInOptions & Partial<Pick<ServeOptions, "auth">>,
  databases: Iterable<string | undefined>,
): ConsoleSignIn {
  const { auth = [] } = options;
  const isOfTokens = auth.includes("oidc") || auth.includes("kubernetes");
  return {
    methods: [
      ...(auth.includes("api-key") ? (["api-key"] as const) : []),
      ...(isOfTokens ? (["token"] as const) : []),
    ],
    hasDatabases: Array.from(databases).filter((name) => name !== undefined).length > 1,
    issuers: consoleIssuersOf(options),
  };
}
