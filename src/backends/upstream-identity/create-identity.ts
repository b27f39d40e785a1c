import type { CredentialHeaders, UpstreamIdentity, UpstreamIdentityOptions } from "./identity.ts";
import { passthroughIdentity } from "./passthrough.ts";

/**
 * Creates the identity of an upstream; it loads only the requested kind. An identity that the caller provides is returned unchanged.
 *
 * @throws Error for options that do not fit together, or for a library that is not installed.
 */
export async function createIdentity(
  options: UpstreamIdentityOptions | UpstreamIdentity = { kind: "passthrough" },
): Promise<UpstreamIdentity> {
  if (!("kind" in options)) return options;
  switch (options.kind) {
    case "passthrough":
      return passthroughIdentity;
    case "service":
      return createServiceIdentity(options.apiKey, options.token);
    case "exchange":
      return (await import("./provider-identity.ts")).createExchangeIdentity(options);
    case "sigv4":
      return (await import("./sigv4.ts")).createSigV4Identity(options);
    case "gcp-id-token":
      return (await import("./gcp-id-token.ts")).createGcpIdentity(options);
  }
}

function createServiceIdentity(apiKey: string | undefined, token: string | undefined): UpstreamIdentity {
  if (apiKey === undefined && token === undefined)
    throw new Error("a service identity needs a key or a token");
  const headers: CredentialHeaders = {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(apiKey !== undefined && { "x-api-key": apiKey }),
  };
  return { credentials: () => headers, refused: () => false, isOwn: true };
}
