import { hash } from "node:crypto";
import type { Call } from "../../namespace/call/call.ts";
import type { KeyedCells } from "../../runtime/threads/keyed-cells.ts";
import {
  type CredentialHeaders,
  passthroughIdentity,
  type UpstreamIdentity,
  type UpstreamIdentityOptions,
} from "./identity.ts";

/**
 * Creates the identity of an upstream; it loads only the requested kind. An identity that the caller provides is returned unchanged.
 *
 * @param cells pauses after failed fetches of tokens, which workers share. Default: those of this identity alone.
 * @throws Error for options that do not fit together, or for a library that is not installed.
 */
export async function createIdentity(
  options: UpstreamIdentityOptions | UpstreamIdentity = { kind: "passthrough" },
  cells?: KeyedCells,
): Promise<UpstreamIdentity> {
  if (!("kind" in options)) return options;
  const pauses = () => ({ cells, owner: hash("sha256", JSON.stringify(options), "base64") });
  switch (options.kind) {
    case "passthrough":
      return passthroughIdentity;
    case "service":
      return createServiceIdentity(options.apiKey, options.token);
    case "exchange":
      return (await import("./provider-identity.ts")).createExchangeIdentity(options, pauses());
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

/**
 * Returns the idempotency key for an upstream to which all callers may be the gateway: the same text of another caller is another key.
 * Apart from the other headers, because clients in browsers have those, and no callers.
 */
export function keyOfCaller(key: string, { principal }: Call): string {
  if (principal === undefined) return key;
  return hash("sha256", JSON.stringify([principal.by, principal.name, key]));
}
