import type { ServeOptions } from "../../config/options/groups.ts";
import type { ConsoleIssuer } from "../../server/app/console-pages.ts";

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
