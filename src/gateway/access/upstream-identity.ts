import type { UpstreamIdentityOptions } from "../../backends/upstream-identity/identity.ts";
import { type Environment, UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";

type IdentityKind = ServeOptions["upstreamIdentity"];
type Read = (options: ServeOptions, environment: Environment) => UpstreamIdentityOptions;

/**
 * Reads the credentials of an upstream from the options of `serve`.
 *
 * @throws UsageError if an option is missing or contradicts another.
 */
export function upstreamIdentityOf(options: ServeOptions, environment: Environment): UpstreamIdentityOptions {
  return KINDS[options.upstreamIdentity](options, environment);
}

/** Kinds of identities that need nothing of a caller. */
const OWN: ReadonlySet<IdentityKind> = new Set(["service", "client-credentials", "sigv4", "gcp-id-token"]);

/** Headers of requests that prove an identity. */
const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set(["authorization", "x-api-key"]);

/** Whether the gateway has credentials of its own at an upstream, which calls without a caller have, too. */
export function hasOwnCredentials({
  backend,
  upstreamIdentity,
  headers,
}: Pick<ServeOptions, "backend" | "upstreamIdentity" | "headers">): boolean {
  if (backend === "glue" || OWN.has(upstreamIdentity)) return true;
  return headers.some(([name]) => CREDENTIAL_HEADERS.has(name.toLowerCase()));
}

const KINDS: Readonly<Record<IdentityKind, Read>> = {
  passthrough: () => ({ kind: "passthrough" }),

  service({ upstreamApiKey: apiKey, upstreamToken: token }) {
    if (apiKey === undefined) required(token, "--upstream-api-key or --upstream-token");
    return { kind: "service", apiKey, token };
  },

  "client-credentials": (options) => exchange(options, "client_credentials"),
  "token-exchange": (options) => exchange(options, "token_exchange"),

  sigv4({ awsRegion, awsService: service, awsUnsignedBodies, headers }, environment) {
    if (headers.some(([name]) => name.toLowerCase() === "authorization")) {
      throw new UsageError("--header authorization and --upstream-identity sigv4 contradict each other");
    }
    const region = awsRegion ?? environment["AWS_REGION"] ?? environment["AWS_DEFAULT_REGION"];
    return {
      kind: "sigv4",
      region: required(region, "--aws-region"),
      service,
      signBodies: !awsUnsignedBodies,
    };
  },

  "gcp-id-token": ({ tokenAudience }) => ({
    kind: "gcp-id-token",
    audience: required(tokenAudience, "--token-audience"),
  }),
};

function exchange(
  options: ServeOptions,
  grant: "client_credentials" | "token_exchange",
): UpstreamIdentityOptions {
  return {
    kind: "exchange",
    grant,
    tokenEndpoint: required(options.tokenEndpoint, "--token-endpoint"),
    clientId: required(options.tokenClientId, "--token-client-id"),
    clientSecret: options.tokenClientSecret,
    scope: options.tokenScope,
    audience: options.tokenAudience,
  };
}

/** Returns a value that calls to the upstream require; throws if it is missing. */
export function required<T>(value: T | undefined, name: string): T {
  if (value !== undefined) return value;
  throw new UsageError(`${name} is missing, without which the upstream cannot be called`);
}
