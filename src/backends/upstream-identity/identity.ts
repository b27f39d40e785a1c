import type { Call } from "../../namespace/call.ts";

/** The headers that tell an upstream who calls; names in lower case. */
export type CredentialHeaders = Readonly<Record<string, string>>;

/** By whose credentials a call goes to its upstream. */
export interface UpstreamIdentity {
  /**
   * The credentials for a call. It answers at once where nothing has to be fetched.
   *
   * @throws LanceError Unauthenticated, when there is nothing to exchange or the provider refuses it, and
   *   ServiceUnavailable, when the provider cannot be reached.
   */
  credentials(call: Call): CredentialHeaders | Promise<CredentialHeaders>;
  /**
   * Tells that the upstream refused credentials with a 401.
   *
   * @returns whether others can be had, so that another try makes sense.
   */
  refused(call: Call, credentials: CredentialHeaders): boolean;
  /** Whether the credentials are the gateway's, so that a client can do nothing about a refusal. Default: false. */
  readonly isOwn?: boolean;
}

/** The client's own credentials, as they came. The default. */
export interface PassthroughIdentityOptions {
  readonly kind: "passthrough";
}

/** One credential for all calls; the client's own stay here. */
export interface ServiceIdentityOptions {
  readonly kind: "service";
  /** Sent as `x-api-key`. */
  readonly apiKey?: string | undefined;
  /** Sent as `authorization: Bearer …`. */
  readonly token?: string | undefined;
}

/** Tokens of an OAuth 2.0 provider. */
export interface ExchangeIdentityOptions {
  readonly kind: "exchange";
  /**
   * `client_credentials`: one token for the gateway itself. `token_exchange`: the client's bearer token is exchanged
   * for another, as RFC 8693 says.
   */
  readonly grant: "client_credentials" | "token_exchange";
  /** The provider's token endpoint, `https:` unless `allowInsecure`. */
  readonly tokenEndpoint: string;
  readonly clientId: string;
  /** Without one the client is public. */
  readonly clientSecret?: string | undefined;
  /** How the secret is sent. Default: `basic`, the HTTP header. */
  readonly clientAuthentication?: "basic" | "post" | undefined;
  /** Scopes, separated by spaces. */
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
  readonly resource?: string | undefined;
  /** How long before its end a token is renewed, in milliseconds. Default: 60,000, or a tenth of its life if less. */
  readonly renewBeforeMs?: number | undefined;
  /** How long a token without `expires_in` is used, in milliseconds. Default: 5 minutes. */
  readonly defaultLifetimeMs?: number | undefined;
  /** The most tokens of clients that are kept. Default: 10,000. */
  readonly maxTokens?: number | undefined;
  /** How long the provider may take, in milliseconds. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Whether the token endpoint may be `http:`. Default: false. */
  readonly allowInsecure?: boolean | undefined;
  /** Certificates of further authorities that the provider may show, in PEM. */
  readonly ca?: string | undefined;
}

/** How calls are authenticated to an upstream. */
export type UpstreamIdentityOptions =
  | PassthroughIdentityOptions
  | ServiceIdentityOptions
  | ExchangeIdentityOptions;
