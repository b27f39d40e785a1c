import type { Logger } from "pino";
import { openKeyRing } from "../auth/api-keys/key-ring.ts";
import { proveByKeys } from "../auth/api-keys/way.ts";
import { type Authenticator, createAuthenticator, type Way } from "../auth/authenticator.ts";
import { proveByCertificates } from "../auth/certificates/way.ts";
import { createFailureDelay } from "../auth/failure-delay.ts";
import { proveByTokens } from "../auth/tokens/way.ts";
import { UsageError } from "../config/option-spec.ts";
import type { ServeOptions } from "../config/options.ts";
import type { KeyedCells } from "../namespace/keyed-cells.ts";
import { openVerifiers } from "./token-issuers.ts";

type WayName = ServeOptions["auth"][number];

/** Options that do nothing without a way of authentication. */
const NEEDS_WAY = [
  ["apiKeysFile", "--api-keys-file", ["api-key"]],
  ["oidcIssuers", "--oidc-issuer", ["oidc"]],
  ["oidcAudiences", "--oidc-audience", ["oidc"]],
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
      throw new UsageError(`${flag} needs --auth ${ways.join(" or ")} beside it`);
  }
  if (auth.length === 0) return undefined;
  const ways: Way[] = [];
  const verifiers = await openVerifiers(options, log);
  if (auth.includes("api-key")) ways.push(await keyWay(options, log));
  if (verifiers.length > 0) ways.push(proveByTokens({ verifiers, passesOn: options.passTokens }));
  // A credential of the request counts before the certificate of its connection.
  if (auth.includes("mtls")) ways.push(certificateWay(options));
  return createAuthenticator(ways, createFailureDelay({ cells: failures }));
}

function certificateWay({ tlsClientCa, mtlsRoles }: ServeOptions): Way {
  if (tlsClientCa === undefined) throw new UsageError("--auth mtls needs --tls-client-ca beside it");
  return proveByCertificates(mtlsRoles);
}

async function keyWay({ apiKeysFile: path }: ServeOptions, log: Logger): Promise<Way> {
  if (path === undefined) throw new UsageError("--auth api-key needs --api-keys-file beside it");
  const keys = await openKeyRing({ path, log }).catch((error: Error) => {
    throw new UsageError(`--api-keys-file cannot be used: ${error.message}`, { cause: error });
  });
  return proveByKeys(keys);
}
