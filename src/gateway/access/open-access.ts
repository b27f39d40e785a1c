import type { Logger } from "pino";
import { type Authenticator, createAuthenticator, createFailureDelay } from "../../auth/authenticator.ts";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import type { Authorizer } from "../../namespace/authorizer.ts";
import type { KeyedCells } from "../../runtime/threads/keyed-cells.ts";
import type { OpaOptions } from "./open-opa.ts";

/** Options about what decides. */
type PolicyOptions = Pick<ServeOptions, "auth" | "policyDir" | "opaUrl"> & OpaOptions;

/** Counts a decision. */
type Count = (isAllowed: boolean) => void;

/**
 * Opens what decides about single objects; undefined if roles decide.
 *
 * @param count counts each decision. Default: nobody does.
 * @throws UsageError for options that contradict each other, and for wrong policies.
 */
export async function openAuthorizer(
  options: PolicyOptions,
  log: Logger,
  count: Count = () => {},
): Promise<Authorizer | undefined> {
  const { auth, policyDir: directory, opaUrl, opaTokenFile, opaCaFile } = options;
  if (directory !== undefined && opaUrl !== undefined)
    throw new UsageError("--policy-dir and --opa-url contradict each other: only one of them decides");
  if (opaUrl === undefined && (opaTokenFile ?? opaCaFile) !== undefined)
    throw new UsageError("--opa-token-file and --opa-ca-file need --opa-url beside them");
  if (opaUrl !== undefined) {
    requireCallers("--opa-url", auth);
    const { openOpa } = await import("./open-opa.ts");
    return counted(await openOpa(opaUrl, options, log), count);
  }
  if (directory === undefined) return undefined;
  requireCallers("--policy-dir", auth);
  const { openPolicyFolder } = await import("../../auth/cedar/policy-folder.ts");
  const policies = await openPolicyFolder({ directory, log }).catch((error: Error) => {
    throw new UsageError(`--policy-dir: ${error.message.replaceAll("\n", "; ")}`, { cause: error });
  });
  return counted(policies, count);
}

function requireCallers(flag: string, auth: ServeOptions["auth"]): void {
  if (auth.length === 0) throw new UsageError(`${flag} requires --auth, which says who calls`);
}

/** Returns an authorizer whose decisions are counted. */
function counted(authorizer: Authorizer, count: Count): Authorizer {
  const { allows, allowsEach } = authorizer;
  return {
    ...authorizer,
    allows(principal, access) {
      const decided = allows(principal, access);
      if (typeof decided === "boolean") count(decided);
      else void decided.then(count, () => {});
      return decided;
    },
    ...(allowsEach !== undefined && {
      async allowsEach(principal, accesses) {
        const decisions = await allowsEach(principal, accesses);
        for (const decision of decisions) count(decision);
        return decisions;
      },
    }),
  };
}

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
