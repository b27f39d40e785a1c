import type { ClientSecretCredentialOptions, TokenCredential } from "@azure/identity";
import { loadLibrary } from "../../../load-library.ts";
import type { OptionReader } from "../storage-options.ts";

type PipelinePolicy = NonNullable<ClientSecretCredentialOptions["additionalPolicies"]>[number]["policy"];

/** Longest pause before another request for a token, in milliseconds. */
const MAX_PAUSE_MS = 5_000;

/** Headers by which a service asks for a pause, each with its unit in milliseconds. */
const PAUSES = [
  ["retry-after", 1_000],
  ["retry-after-ms", 1],
  ["x-ms-retry-after-ms", 1],
] as const;

/**
 * Hides longer pauses, which the library would make for all calls: they share the request, and would fail for as long as the service
 * has said.
 */
const withoutLongPauses: PipelinePolicy = {
  name: "withoutLongPauses",
  async sendRequest(request, next) {
    const answer = await next(request);
    const { headers } = answer;
    // A date yields NaN, which is not short.
    const isShort = PAUSES.every(([name, unit]) => Number(headers.get(name) ?? 0) * unit <= MAX_PAUSE_MS);
    if (!isShort) for (const [name] of PAUSES) headers.delete(name);
    return answer;
  },
};

/**
 * Returns the identity of the gateway at Microsoft Entra: a service principal of the options, or that of the machine.
 *
 * @param httpClient sends the requests. Default: that of the library
 */
export async function identityOf(
  read: OptionReader,
  httpClient?: ClientSecretCredentialOptions["httpClient"],
): Promise<TokenCredential> {
  const options = {
    additionalPolicies: [{ policy: withoutLongPauses, position: "perRetry" as const }],
    ...(httpClient && { httpClient }),
  };
  const identity = await loadLibrary("az://", "@azure/identity", () => import("@azure/identity"));
  const [tenant, client, secret] = [
    read.text("tenant_id", "authority_id"),
    read.text("client_id"),
    read.text("client_secret"),
  ];
  return tenant !== undefined && client !== undefined && secret !== undefined
    ? new identity.ClientSecretCredential(tenant, client, secret, options)
    : new identity.DefaultAzureCredential(options);
}
