import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";

/** TLS towards an upstream, in PEM. */
export interface UpstreamTls {
  /** Certificates of the authorities that may have signed the upstream's. Default: those of Node. */
  readonly ca?: string | undefined;
  /** The gateway's own certificate, with {@link key}, for an upstream that requires one. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** Server name to request, which the upstream's certificate must have. Default: the host of the address. */
  readonly serverName?: string | undefined;
}

/** Headers that identify the caller to an upstream; names in lower case. */
export type CredentialHeaders = Readonly<Record<string, string>>;

/** A request to an upstream, as far as a signature may cover it. */
export interface SignableRequest {
  readonly method: string;
  /** Whole address, with the query. */
  readonly url: string;
  /** Names and values in turn, the names in lower case. */
  readonly headers: readonly string[];
  /** A body that streams can only be read by sending it. */
  readonly body: string | AsyncIterable<Uint8Array> | undefined;
}

/** Creates the credentials of a request from the request, separately for each attempt. It fetches nothing. */
export type SignRequest = (request: SignableRequest) => Promise<CredentialHeaders>;

/** Credentials of a call: headers, or a function that signs each request of the call. */
export type UpstreamCredentials = CredentialHeaders | SignRequest;

/** Provides the credentials with which calls go to an upstream. */
export interface UpstreamIdentity {
  /**
   * Returns the credentials for a call, without a promise if nothing must be fetched.
   *
   * @throws LanceError Unauthenticated, if the client has nothing to exchange or the provider refuses it, and
   *   ServiceUnavailable, if the provider cannot be reached.
   */
  credentials(call: Call): UpstreamCredentials | Promise<UpstreamCredentials>;
  /**
   * Reports that the upstream refused credentials.
   *
   * @returns whether others are available, so that a retry makes sense.
   */
  refused(call: Call, credentials: UpstreamCredentials): boolean;
  /** Whether an answer of a REST upstream refuses the credentials. Default: one with status 401 does. */
  isRefusal?(answer: UpstreamAnswer): boolean;
  /** Whether the credentials are the gateway's, so that a client cannot fix a refusal. Default: false. */
  readonly isOwn?: boolean;
}

/** The head of a REST upstream's answer. */
export interface UpstreamAnswer {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** The client's own credentials, unchanged. The default. */
export interface PassthroughIdentityOptions {
  readonly kind: "passthrough";
}

/** A fixed credential for all calls; the client's own are not forwarded. */
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
   * `client_credentials`: a token for the gateway itself. `token_exchange`: the client's bearer token is exchanged
   * for another, as RFC 8693 says.
   */
  readonly grant: "client_credentials" | "token_exchange";
  /** Token endpoint of the provider, `https:` unless `allowInsecure`. */
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
  /**
   * How long before its expiry a token is renewed, in milliseconds. Default: 60,000, or a tenth of its life if that
   * is less.
   */
  readonly renewBeforeMs?: number | undefined;
  /** How long a token without `expires_in` is used, in milliseconds. Default: 5 minutes. */
  readonly defaultLifetimeMs?: number | undefined;
  /** Maximum number of cached tokens of clients. Default: 10,000. */
  readonly maxTokens?: number | undefined;
  /** Longest time for an answer of the provider, in milliseconds. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Whether the token endpoint may be `http:`. Default: false. */
  readonly allowInsecure?: boolean | undefined;
  /** Certificates of further authorities that may have signed the provider's, in PEM. */
  readonly ca?: string | undefined;
}

/** AWS credentials that sign each request by Signature Version 4, for REST upstreams. */
export interface SigV4IdentityOptions {
  readonly kind: "sigv4";
  /** Region of the signature, for example `eu-central-1`. */
  readonly region: string;
  /** Service of the signature. Default: `execute-api`, which is API Gateway. */
  readonly service?: string | undefined;
  /** Whether signatures cover JSON bodies; Arrow bodies stream and are never covered. Default: true. */
  readonly signBodies?: boolean | undefined;
  /** Returns the gateway's credentials. Default: the default credential chain of AWS. */
  readonly provider?: (() => Promise<AwsCredentials>) | undefined;
  /**
   * How long before their expiry credentials are renewed, in milliseconds. Default: 5 minutes, or a tenth of their
   * life if that is less.
   */
  readonly renewBeforeMs?: number | undefined;
}

/** Credentials in the form of the AWS libraries. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  /** Default: they do not expire. */
  readonly expiration?: Date | undefined;
}

/** Identity tokens of the gateway's Google service account, for upstreams behind Cloud Run or IAP. */
export interface GcpIdentityOptions {
  readonly kind: "gcp-id-token";
  /** Audience of the tokens, for example `https://catalog-abc.a.run.app`. */
  readonly audience: string;
  /**
   * How long before its expiry a token is renewed, in milliseconds. Default: 5 minutes, or a tenth of its life if
   * that is less.
   */
  readonly renewBeforeMs?: number | undefined;
}

/** How calls are authenticated to an upstream. */
export type UpstreamIdentityOptions =
  | PassthroughIdentityOptions
  | ServiceIdentityOptions
  | ExchangeIdentityOptions
  | SigV4IdentityOptions
  | GcpIdentityOptions;

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

/**
 * Returns the error that a client gets for an upstream's error. A client cannot fix a refusal of the gateway's own
 * credentials, so it gets ServiceUnavailable.
 */
export function toldToClient<E>(
  error: E,
  { isOwn }: UpstreamIdentity,
  isRefusal = isLanceError(error, "Unauthenticated"),
): E | LanceError {
  if (isOwn !== true || !isRefusal) return error;
  const text = "the upstream catalog refused the gateway's credentials";
  const instance = error instanceof LanceError ? error.instance : undefined;
  return new LanceError("ServiceUnavailable", text, { cause: error, instance });
}
