import { isJsonObject } from "../../runtime/json.ts";
import { type FetchOptions, fetchJson } from "./fetch-json.ts";

/** Options of {@link fetchIssuerKeys}. */
export interface IssuerAddress {
  /** Issuer, which is also the address of its discovery document. */
  readonly issuer: string;
  /** Address of the keys. Default: the one in the discovery document. */
  readonly jwksUri?: string | undefined;
  /** Returns the options of the requests; it is called for each set of keys, because files change. Default: none. */
  readonly settings?: (() => Promise<FetchOptions>) | undefined;
}

/**
 * Fetches the set of keys of an issuer, by its discovery document (OpenID Connect Discovery 1.0).
 *
 * @throws Error for a document of another issuer, or one that leads to an address without TLS.
 */
export async function fetchIssuerKeys({ issuer, jwksUri, settings }: IssuerAddress): Promise<unknown> {
  const options = await settings?.();
  return fetchJson(jwksUri ?? (await discover(issuer, options)), options);
}

async function discover(issuer: string, options: FetchOptions | undefined): Promise<string> {
  const document = await fetchJson(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, options);
  if (!isJsonObject(document) || document["issuer"] !== issuer)
    throw new Error(`the discovery document at ${issuer} is that of another issuer`);
  const uri = document["jwks_uri"];
  const parsed = typeof uri === "string" ? URL.parse(uri) : null;
  if (parsed === null) throw new Error(`the discovery document at ${issuer} has no jwks_uri`);
  if (parsed.protocol !== "https:" && parsed.origin !== new URL(issuer).origin)
    throw new Error(`the keys of ${issuer} have an address without TLS`);
  return parsed.href;
}
