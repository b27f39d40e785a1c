import {
  allowInsecureRequests,
  ClientSecretBasic,
  ClientSecretPost,
  clientCredentialsGrantRequest,
  customFetch,
  genericTokenEndpointRequest,
  None,
  OperationProcessingError,
  processClientCredentialsResponse,
  processGenericTokenEndpointResponse,
  ResponseBodyError,
  type TokenEndpointResponse,
  WWWAuthenticateChallengeError,
} from "oauth4webapi";
import { Agent, fetch, Response } from "undici";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { whileWaiting } from "../../runtime/promises.ts";
import { Gate } from "../resilience/gate.ts";
import type { CredentialHeaders, ExchangeIdentityOptions, UpstreamIdentity } from "./identity.ts";
import type { FailureScope } from "./refused-fetches.ts";
import { createTokenCache, type Token, type TokenPauses } from "./token-cache.ts";

const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";

/** The only subject of a gateway with tokens of its own. */
const ITSELF = "";

/** Maximum numbers of concurrent and of waiting requests to a provider. */
const MAX_REQUESTS = 32;
const MAX_WAITING = 1_000;

/** A caller that waits for a token may leave; its fetch continues for the others. */
const UNENDING = new AbortController().signal;

/** Largest answer of a provider, in bytes. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/** Answers of a provider that rejects the client's token. */
const CLIENTS_FAULT = new Set(["invalid_grant", "invalid_request", "invalid_token", "invalid_target"]);

/**
 * Creates an identity whose tokens come from an OAuth 2.0 provider.
 *
 * @throws Error for a token endpoint that is not a URL or not encrypted.
 */
export function createExchangeIdentity(
  options: ExchangeIdentityOptions,
  pauses?: TokenPauses,
): UpstreamIdentity {
  const { renewBeforeMs = 60_000, maxTokens = 10_000 } = options;
  const request = createTokenRequest(options);
  const isOwn = options.grant === "client_credentials";
  const cache = createTokenCache({ ...pauses, fetch: request, scopeOf, renewBeforeMs, maxTokens });

  function subjectOf({ identity, brought = identity }: Call): string {
    if (isOwn) return ITSELF;
    // A token that ends at the gateway is still the one to exchange. An empty one is nobody's.
    if (brought.authToken) return brought.authToken;
    throw new LanceError("Unauthenticated", "a bearer token is required for the token exchange");
  }

  return {
    isOwn,
    credentials(call) {
      const token = cache.get(subjectOf(call));
      if (typeof token === "string") return bearer(token);
      // The callers share the token; when one of them leaves, the others still get it.
      return whileWaiting(token, call.signal).then(bearer);
    },
    refused: (call, { authorization = "" }: CredentialHeaders) =>
      cache.refuse(subjectOf(call), authorization.slice(BEARER.length)),
  };
}

const BEARER = "Bearer ";

function bearer(token: string): CredentialHeaders {
  return { authorization: BEARER + token };
}

function createTokenRequest(options: ExchangeIdentityOptions): (subject: string) => Promise<Token> {
  const { grant, tokenEndpoint, clientId, clientSecret, timeoutMs = 10_000 } = options;
  const { allowInsecure = false, ca } = options;
  const { protocol, origin } = new URL(tokenEndpoint);
  if (protocol !== "https:" && !allowInsecure) throw new Error("the token endpoint must be https:");
  const server = { issuer: origin, token_endpoint: tokenEndpoint };
  const client = { client_id: clientId };
  const authentication =
    clientSecret === undefined
      ? None()
      : (options.clientAuthentication === "post" ? ClientSecretPost : ClientSecretBasic)(clientSecret);
  const dispatcher = new Agent({ connections: MAX_REQUESTS, ...(ca !== undefined && { connect: { ca } }) });
  const settings = () => ({
    [allowInsecureRequests]: allowInsecure,
    signal: AbortSignal.timeout(timeoutMs),
    [customFetch]: async (url: string, init: object) => bounded(await fetch(url, { ...init, dispatcher })),
  });
  const gate = new Gate({ places: MAX_REQUESTS, maxWaiting: MAX_WAITING, name: "identity provider" });

  async function ask(subject: string): Promise<TokenEndpointResponse> {
    const parameters = parametersOf(options, subject);
    // No text of a caller decides about this: it would get the gateway's own token.
    if (grant === "client_credentials") {
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
      // RFC 8693's type for a token that is not an OAuth token.
      recognizedTokenTypes: { n_a: () => {} },
    });
  }

  return async (subject) => {
    await gate.enter(UNENDING, timeoutMs);
    try {
      const { access_token: value, expires_in: seconds } = await ask(subject);
      const life = seconds === undefined ? (options.defaultLifetimeMs ?? 300_000) : seconds * 1000;
      return { value, expiresAt: Date.now() + life };
    } catch (thrown) {
      throw providerError(thrown, subject);
    } finally {
      gate.leave();
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

/** Returns the whole answer of the provider, unless it is longer than any token. */
async function bounded(answer: Response): Promise<Response> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of answer.body ?? []) {
    size += piece.byteLength;
    if (size > MAX_ANSWER_BYTES) throw new Error(`the answer is larger than ${MAX_ANSWER_BYTES} bytes`);
    pieces.push(piece);
  }
  const { status, statusText, headers } = answer;
  return new Response(size === 0 ? null : Buffer.concat(pieces), { status, statusText, headers });
}

/**
 * Returns the scope of a failure. A client may be able to provoke any answer with its token, but hardly a missing
 * one.
 */
function scopeOf(error: unknown): FailureScope | undefined {
  if (!(error instanceof LanceError) || error.fault === "crowded") return undefined;
  return error.fault === "unreached" ? "provider" : "subject";
}

function providerError(cause: unknown, subject: string): LanceError {
  if (cause instanceof ResponseBodyError && CLIENTS_FAULT.has(cause.error) && subject !== ITSELF) {
    return new LanceError("Unauthenticated", `the token cannot be exchanged: ${cause.error}`, { cause });
  }
  const refused = cause instanceof ResponseBodyError || cause instanceof WWWAuthenticateChallengeError;
  const text = refused ? "refused the gateway" : "gave no token";
  const answered = refused || cause instanceof OperationProcessingError;
  return new LanceError("ServiceUnavailable", `the identity provider ${text}`, {
    cause,
    fault: answered ? undefined : "unreached",
  });
}
