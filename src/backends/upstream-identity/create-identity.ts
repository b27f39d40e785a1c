import type { CredentialHeaders, UpstreamIdentity, UpstreamIdentityOptions } from "./identity.ts";
import { passthroughIdentity } from "./passthrough.ts";
import { createExchangeIdentity } from "./provider-identity.ts";

/**
 * Creates the identity of one upstream.
 *
 * @throws Error for options that do not fit together.
 */
export function createIdentity(options: UpstreamIdentityOptions = { kind: "passthrough" }): UpstreamIdentity {
  switch (options.kind) {
    case "passthrough":
      return passthroughIdentity;
    case "service":
      return createServiceIdentity(options.apiKey, options.token);
    case "exchange":
      return createExchangeIdentity(options);
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
