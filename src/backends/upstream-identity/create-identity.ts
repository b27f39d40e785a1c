import { createGcpIdentity } from "./gcp-id-token.ts";
import type { CredentialHeaders, UpstreamIdentity, UpstreamIdentityOptions } from "./identity.ts";
import { passthroughIdentity } from "./passthrough.ts";
import { createExchangeIdentity } from "./provider-identity.ts";
import { createSigV4Identity } from "./sigv4.ts";

/**
 * Creates the identity of an upstream. An identity that the caller provides is returned unchanged.
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
      return createExchangeIdentity(options);
    case "sigv4":
      return createSigV4Identity(options);
    case "gcp-id-token":
      return createGcpIdentity(options);
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
