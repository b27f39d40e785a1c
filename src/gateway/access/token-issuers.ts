import { decodeJwt } from "jose";
import type { Logger } from "pino";
import { createKeySet, fetchIssuerKeys, type IssuerAddress } from "../../auth/tokens/key-set.ts";
import type { TrustedIssuer, Verifier } from "../../auth/tokens/verify.ts";
import { ALGORITHMS, type IssuerSetting } from "../../config/issuers.ts";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { readText } from "../../runtime/files/files-in-time.ts";

const CLOCK_SKEW_SECONDS = 30;

/** Address of the API server inside of a cluster. */
const IN_CLUSTER = "https://kubernetes.default.svc";

/** Creates the verifiers of the tokens that the options ask for; an issuer that cannot be reached does not stop the start. */
export async function openVerifiers(options: ServeOptions, log: Logger): Promise<readonly Verifier[]> {
  const { auth } = options;
  const verifiers = [
    ...(auth.includes("oidc") ? oidcVerifiers(options, log) : []),
    ...(auth.includes("kubernetes") ? [await kubernetesVerifier(options, log)] : []),
  ];
  const issuers = verifiers.map(({ issuer }) => issuer.issuer);
  const doubled = issuers.find((issuer, index) => issuers.indexOf(issuer) < index);
  if (doubled !== undefined) throw new UsageError(`the issuer ${doubled} is given twice`);
  return verifiers;
}

function oidcVerifiers(options: ServeOptions, log: Logger): readonly Verifier[] {
  const { oidcIssuers } = options;
  if (oidcIssuers.length === 0) throw new UsageError("--auth oidc requires --oidc-issuer");
  const prefixes = oidcIssuers.map(
    ({ prefix, issuer }) => prefix ?? (oidcIssuers.length > 1 ? `${issuer}#` : ""),
  );
  // An issuer whose prefix begins that of another one could give a name that continues like it.
  if (
    prefixes.some((prefix, at) => prefixes.some((other, place) => place !== at && other.startsWith(prefix)))
  )
    throw new UsageError(
      "the issuers of --oidc-issuer need different prefixes, of which none begins another, so that their callers differ",
    );
  return oidcIssuers.map((setting, index) => {
    const { issuer, jwksUri, caFile } = setting;
    const settings = caFile === undefined ? undefined : async () => ({ ca: await readText(caFile) });
    return verifierOf(trusted(setting, prefixes[index] ?? "", options), { issuer, jwksUri, settings }, log);
  });
}

function trusted(setting: IssuerSetting, prefix: string, options: ServeOptions): TrustedIssuer {
  const { issuer, audiences = options.oidcAudiences, algorithms = ALGORITHMS, requiredClaims = [] } = setting;
  if (audiences.length === 0) throw new UsageError(`the issuer ${issuer} requires --oidc-audience`);
  const { clockSkewMs = CLOCK_SKEW_SECONDS * 1000, grants = options.grants } = setting;
  const { nameClaim = options.oidcNameClaim, groupsClaim = options.oidcGroupsClaim } = setting;
  const clockSkewSeconds = clockSkewMs / 1000;
  const facts = { by: "oidc", issuer, audiences, algorithms, clockSkewSeconds } as const;
  return { ...facts, requiredClaims, nameClaim, groupsClaim, prefix, grants };
}

async function kubernetesVerifier(options: ServeOptions, log: Logger): Promise<Verifier> {
  const { kubernetesAudiences: audiences, kubernetesCaFile, kubernetesTokenFile, grants } = options;
  if (audiences.length === 0) throw new UsageError("--auth kubernetes requires --kubernetes-audience");
  const { kubernetesIssuer: given, kubernetesApiServer = given === undefined ? IN_CLUSTER : undefined } =
    options;
  const issuer = given ?? (await ownIssuer(kubernetesTokenFile));
  const trustedIssuer: TrustedIssuer = {
    ...{ by: "kubernetes", issuer, audiences, algorithms: ALGORITHMS, grants },
    ...{ clockSkewSeconds: CLOCK_SKEW_SECONDS, requiredClaims: [] },
    ...{ nameClaim: "sub", groupsClaim: "groups", prefix: "" },
  };
  if (kubernetesApiServer === undefined) return verifierOf(trustedIssuer, { issuer }, log);
  const address: IssuerAddress = {
    issuer,
    jwksUri: `${kubernetesApiServer.replace(/\/$/, "")}/openid/v1/jwks`,
    // The cluster replaces both files from time to time.
    settings: async () => ({
      ca: await readText(kubernetesCaFile),
      token: (await readText(kubernetesTokenFile)).trim(),
    }),
  };
  return verifierOf(trustedIssuer, address, log);
}

/** Returns the issuer of the gateway's own token, which is that of the cluster. */
async function ownIssuer(file: string): Promise<string> {
  const { iss } = await readText(file)
    .then((token) => decodeJwt(token.trim()))
    .catch((cause: Error) => {
      const text = `--auth kubernetes requires --kubernetes-issuer outside of a cluster: ${cause.message}`;
      throw new UsageError(text, { cause });
    });
  if (iss === undefined) throw new UsageError(`the token in ${file} does not name an issuer`);
  return iss;
}

function verifierOf(issuer: TrustedIssuer, address: IssuerAddress, log: Logger): Verifier {
  const keys = createKeySet({ issuer: issuer.issuer, fetch: () => fetchIssuerKeys(address), log });
  // The first calls need not wait then.
  keys.prepare();
  return { issuer, keys };
}
