import {
  allowInsecureRequests,
  ClientSecretBasic,
  ClientSecretPost,
  clientCredentialsGrantRequest,
  customFetch,
  genericTokenEndpointRequest,
  None,
  processClientCredentialsResponse,
  processGenericTokenEndpointResponse,
  ResponseBodyError,
  type TokenEndpointResponse,
  WWWAuthenticateChallengeError,
} from "oauth4webapi";
import { Agent, fetch } from "undici";
import type { Call } from "../../namespace/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { CredentialHeaders, ExchangeIdentityOptions, UpstreamIdentity } from "./identity.ts";
import { createTokenCache, type Token } from "./token-cache.ts";
import { whileWaiting } from "./while-waiting.ts";

const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";

/** The only subject of a gateway that has tokens of its own. */
const ITSELF = "";

/** What a provider answers when it is the client's token that it does not take. */
const CLIENTS_FAULT = new Set(["invalid_grant", "invalid_request", "invalid_token", "invalid_target"]);

/**
 * Creates an identity whose tokens come from an OAuth 2.0 provider.
 *
 * @throws Error for a token endpoint that is no URL or not encrypted.
 */
export function createExchangeIdentity(options: ExchangeIdentityOptions): UpstreamIdentity {
  const { renewBeforeMs = 60_000, maxTokens = 10_000 } = options;
  const request = createTokenRequest(options);
  const isOwn = options.grant === "client_credentials";
  const cache = createTokenCache({ fetch: request, renewBeforeMs, maxTokens });

  function subjectOf({ identity }: Call): string {
    if (isOwn) return ITSELF;
    if (identity.authToken !== undefined) return identity.authToken;
    throw new LanceError("Unauthenticated", "a bearer token is needed, which the gateway exchanges");
  }

  return {
    isOwn,
    credentials(call) {
      const token = cache.get(subjectOf(call));
      if (typeof token === "string") return bearer(token);
      // The token is for all who wait; one of them that goes away leaves it to the others.
      return whileWaiting(token, call.signal).then(bearer);
    },
    refused: (call, { authorization = "" }) =>
      cache.refuse(subjectOf(call), authorization.slice(BEARER.length)),
  };
}

const BEARER = "Bearer ";

function bearer(token: string): CredentialHeaders {
  return { authorization: BEARER + token };
}

function createTokenRequest(options: ExchangeIdentityOptions): (subject: string) => Promise<Token> {
  const { tokenEndpoint, clientId, clientSecret, timeoutMs = 10_000, allowInsecure = false, ca } = options;
  const { protocol, origin } = new URL(tokenEndpoint);
  if (protocol !== "https:" && !allowInsecure) throw new Error("the token endpoint must be https:");
  const server = { issuer: origin, token_endpoint: tokenEndpoint };
  const client = { client_id: clientId };
  const authentication =
    clientSecret === undefined
      ? None()
      : (options.clientAuthentication === "post" ? ClientSecretPost : ClientSecretBasic)(clientSecret);
  const agent = ca === undefined ? undefined : new Agent({ connect: { ca } });
  const settings = () => ({
    [allowInsecureRequests]: allowInsecure,
    signal: AbortSignal.timeout(timeoutMs),
    ...(agent && {
      [customFetch]: (url: string, init: object) => fetch(url, { ...init, dispatcher: agent }),
    }),
  });

  async function ask(subject: string): Promise<TokenEndpointResponse> {
    const parameters = parametersOf(options, subject);
    if (subject === ITSELF) {
      const answer = await clientCredentialsGrantRequest(
        server,
        client,
        authentication,
        parameters,
        settings() as never,
      );
      return processClientCredentialsResponse(server, client, answer);
    }
    const answer = await genericTokenEndpointRequest(
      server,
      client,
      authentication,
      TOKEN_EXCHANGE,
      parameters,
      settings() as never,
    );
    return processGenericTokenEndpointResponse(server, client, answer, {
      // What RFC 8693 calls a token that is none of OAuth's own.
      recognizedTokenTypes: { n_a: () => {} },
    });
  }

  return async (subject) => {
    try {
      const { access_token: value, expires_in: seconds } = await ask(subject);
      const life = seconds === undefined ? (options.defaultLifetimeMs ?? 300_000) : seconds * 1000;
      return { value, expiresAt: Date.now() + life };
    } catch (thrown) {
      throw providerError(thrown, subject);
    }
  };
}

function parametersOf(options: ExchangeIdentityOptions, subject: string): Record<string, string> {
  const { scope, audience, resource } = options;
  return {
    ...(scope !== undefined && { scope }),
    ...(audience !== undefined && { audience }),
    ...(resource !== undefined && { resource }),
    ...(subject !== ITSELF && { subject_token: subject, subject_token_type: ACCESS_TOKEN }),
  };
}

function providerError(cause: unknown, subject: string): LanceError {
  if (cause instanceof ResponseBodyError && CLIENTS_FAULT.has(cause.error) && subject !== ITSELF) {
    return new LanceError("Unauthenticated", `the token cannot be exchanged: ${cause.error}`, { cause });
  }
  const refused = cause instanceof ResponseBodyError || cause instanceof WWWAuthenticateChallengeError;
  const text = refused ? "refused the gateway" : "gave no token";
  return new LanceError("ServiceUnavailable", `the identity provider ${text}`, { cause });
}
