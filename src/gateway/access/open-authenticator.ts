import type { Logger } from "pino";
import { type Authenticator, createAuthenticator, createFailureDelay } from "../../auth/authenticator.ts";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import type { KeyedCells } from "../../runtime/threads/keyed-cells.ts";

type WayName = ServeOptions["auth"][number];

/** Options that do nothing without a way of authentication. */
const NEEDS_WAY = [
  ["apiKeysFile", "--api-keys-file", ["api-key"]],
  ["oidcIssuers", "--oidc-issuer", ["oidc"]],
  ["oidcAudiences", "--oidc-audience", ["oidc"]],
  ["consoleOidcClientId", "--console-oidc-client-id", ["oidc"]],
  ["kubernetesAudiences", "--kubernetes-audience", ["kubernetes"]],
  ["kubernetesIssuer", "--kubernetes-issuer", ["kubernetes"]],
  ["kubernetesApiServer", "--kubernetes-api-server", ["kubernetes"]],
  ["grants", "--grant", ["oidc", "kubernetes"]],
  ["tlsClientCa", "--tls-client-ca", ["mtls"]],
  ["mtlsRoles", "--mtls-role", ["mtls"]],
] as const satisfies readonly (readonly [keyof ServeOptions, string, readonly WayName[]])[];

/**
 * Opens what the options say about authentication; undefined if nobody is asked.
 *
 * @param failures failures that the workers of a process have seen. Default: those of this thread.
 * @throws UsageError for options that contradict each other, and for a file of keys that cannot be read.
 */
export async function openAuthenticator(
  options: ServeOptions,
  log: Logger,
  failures?: KeyedCells,
): Promise<Authenticator | undefined> {
  const { auth } = options;
  for (const [option, flag, ways] of NEEDS_WAY) {
    const isGiven = [options[option] ?? []].flat().length > 0;
    if (isGiven && !ways.some((way) => auth.includes(way)))
      throw new UsageError(`${flag} requires --auth ${ways.join(" or ")}`);
  }
  if (auth.length === 0) return undefined;
  const { openWays } = await import("./open-authentication.ts");
  const ways = await openWays(options, log);
  return createAuthenticator(ways, createFailureDelay({ cells: failures }));
}
