import type { CredentialHeaders, UpstreamIdentity } from "./identity.ts";

const NONE: CredentialHeaders = {};

/** Passes the credentials on unchanged, whatever their scheme; those of the request's body become headers. */
export const passthroughIdentity: UpstreamIdentity = {
  credentials({ headers, identity: { apiKey, authToken } }) {
    const authorization =
      headers["authorization"] ?? (authToken === undefined ? undefined : `Bearer ${authToken}`);
    if (authorization === undefined && apiKey === undefined) return NONE;
    return {
      ...(authorization !== undefined && { authorization }),
      ...(apiKey !== undefined && { "x-api-key": apiKey }),
    };
  },
  refused: () => false,
};
