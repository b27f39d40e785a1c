import { lookup } from "node:dns/promises";
import type { Logger } from "pino";
import {
  type Authenticator,
  createAuthenticator,
  createFailureDelay,
  type Way,
} from "../../auth/authenticator.ts";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { readOptionFile } from "../../config/secret-files.ts";
import type { Authorizer } from "../../namespace/authorizer.ts";
import { openFollowed, stampOfFiles } from "../../runtime/files/follow.ts";
import { isLoopbackAddress } from "../../runtime/loopback.ts";
import type { KeyedCells } from "../../runtime/threads/keyed-cells.ts";

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
  const ways = await openWays(options, log);
  return createAuthenticator(ways, createFailureDelay({ cells: failures }));
}

/**
 * Opens the ways by which callers prove who they are; it loads only what the requested ones need.
 *
 * @throws UsageError for options that are missing beside others, and for a file of keys that cannot be read.
 */
async function openWays(options: ServeOptions, log: Logger): Promise<readonly Way[]> {
  const { auth } = options;
  const asksTokens = auth.includes("oidc") || auth.includes("kubernetes");
  const tokens = asksTokens ? await openTokenWay(options, log) : undefined;
  const certificates = auth.includes("mtls") ? await certificateWay(options) : undefined;
  // Last, because it follows its file, which nobody would end if another way could not be opened.
  const keys = auth.includes("api-key") ? await keyWay(options, log) : undefined;
  // A credential of the request counts before the certificate of its connection.
  return [keys, tokens, certificates].filter((way) => way !== undefined);
}

async function openTokenWay(options: ServeOptions, log: Logger): Promise<Way> {
  const { openVerifiers } = await import("./token-issuers.ts");
  const verifiers = await openVerifiers(options, log);
  const { proveByTokens } = await import("../../auth/tokens/authenticate-by-token.ts");
  return proveByTokens({ verifiers, passesOn: options.passTokens });
}

async function certificateWay({ tlsClientCa, mtlsRoles }: ServeOptions): Promise<Way> {
  if (tlsClientCa === undefined) throw new UsageError("--auth mtls requires --tls-client-ca");
  const { proveByCertificates } = await import("../../auth/authenticate-by-certificate.ts");
  return proveByCertificates(mtlsRoles);
}

async function keyWay({ apiKeysFile: path }: ServeOptions, log: Logger): Promise<Way> {
  if (path === undefined) throw new UsageError("--auth api-key requires --api-keys-file");
  const { openKeyRing, proveByKeys } = await import("../../auth/api-keys/key-ring.ts");
  const keys = await openKeyRing({ path, log }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT")
      throw new UsageError(
        `--api-keys-file ${path} does not exist (ENOENT); lance-gateway keys create makes it`,
      );
    throw new UsageError(`--api-keys-file cannot be used: ${error.message}`, { cause: error });
  });
  return proveByKeys(keys);
}

/** Options about the server of Open Policy Agent, beside its address. */
type OpaOptions = Pick<ServeOptions, "opaTokenFile" | "opaCaFile" | "opaTimeoutMs" | "opaCacheMs">;

/** Path of the rule if the address has none. */
const DEFAULT_PATH = "/v1/data/lance/gateway/allowed";

/**
 * Opens the way to a server of Open Policy Agent, which need not be there yet.
 *
 * @throws UsageError for a file that cannot be read.
 */
async function openOpa(address: string, options: OpaOptions, log: Logger): Promise<Authorizer> {
  const { opaTokenFile, opaCaFile, opaTimeoutMs: timeoutMs, opaCacheMs: maxAgeMs } = options;
  const { origin, pathname } = new URL(address);
  const url = pathname === "/" ? `${origin}${DEFAULT_PATH}` : address;
  const ca = opaCaFile === undefined ? undefined : await readOptionFile("--opa-ca-file", opaCaFile);
  const token = opaTokenFile === undefined ? undefined : await openToken(opaTokenFile, log);
  const { createOpaServer } = await import("../../auth/opa/server.ts");
  const { createOpaAuthorizer } = await import("../../auth/opa/opa.ts");
  const server = createOpaServer({ url, timeoutMs, ca, token: token?.read });
  // A server that is away, or a rule without a value, shows in the log before the first call fails.
  void server.ask({ accesses: [] }).then(
    (result) => {
      if (result === undefined)
        log.warn({ url }, "the rule of --opa-url has no value, so that everything is refused");
    },
    (error: unknown) => log.warn({ url, err: error }, "the policy server cannot be asked yet"),
  );
  const { allows, allowsEach, close } = createOpaAuthorizer({ server, maxAgeMs, log });
  return {
    allows,
    allowsEach,
    close() {
      token?.close();
      close();
    },
  };
}

async function openToken(path: string, log: Logger) {
  let token: string;
  const { first, close } = await openFollowed({
    stamp: () => stampOfFiles([path]),
    read: async () => (await readOptionFile("--opa-token-file", path)).trim(),
    take(changed) {
      token = changed;
    },
    failed: (error) => log.error({ path, err: error }, "the token for the policy server stays as it was"),
  });
  token = first;
  return { read: () => token, close };
}

/** Options that say where the gateway listens. */
type Place = Pick<ServeOptions, "host"> & Partial<Pick<ServeOptions, "socketPath">>;

/**
 * Refuses to listen where other machines can connect, if callers need not prove who they are and the operator has not said that this
 * is intended.
 *
 * @throws UsageError
 */
export async function refuseStrangers({
  auth,
  insecure,
  ...place
}: Place & Pick<ServeOptions, "auth" | "insecure">): Promise<void> {
  if (auth.length > 0 || insecure || (await isLocal(place))) return;
  const { host } = place;
  throw new UsageError(
    `--host ${host} can be reached from other machines, where everyone could do everything: use --auth api-key, or --insecure`,
  );
}

/** Whether credentials travel in the clear between machines. */
export async function travelsInTheClear({
  tlsCert,
  ...place
}: Place & Partial<Pick<ServeOptions, "tlsCert">>): Promise<boolean> {
  return tlsCert === undefined && !(await isLocal(place));
}

async function isLocal({ host, socketPath }: Place): Promise<boolean> {
  return socketPath !== undefined || isLoopback(host);
}

/** Whether a host names this machine alone. A name that cannot be resolved fails when the gateway listens. */
async function isLoopback(host: string): Promise<boolean> {
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.every(({ address }) => isLoopbackAddress(address));
}
