/** An issuer of tokens, at which callers sign in; the gateway names it. */
export interface Issuer {
  readonly issuer: string;
  /** Client id of the console there. */
  readonly clientId: string;
  /** Scopes to request, separated by spaces. */
  readonly scope: string;
}

/** Endpoints of an issuer, by their names in its discovery document. */
export type Endpoint = "authorization_endpoint" | "token_endpoint" | "end_session_endpoint";

/** What an issuer says of itself. */
export interface Metadata {
  /** Whether answers of the authorization endpoint name the issuer. */
  readonly namesItself: boolean;
  /** Returns the address of an endpoint; undefined if the issuer does not have it. */
  find(endpoint: Endpoint): URL | undefined;
}

/** Sends a request, as `fetch` does. */
type Send = (url: string, init?: RequestInit) => Promise<Response>;

/**
 * Reads the discovery document of an issuer (OpenID Connect Discovery 1.0).
 *
 * @throws Error with a sentence for people.
 */
export async function discover({ issuer }: Issuer, send: Send = fetch): Promise<Metadata> {
  const address = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const document = await readJson(send, address);
  if (document["issuer"] !== issuer) throw new Error(`${address} describes another issuer.`);
  return {
    namesItself: document["authorization_response_iss_parameter_supported"] === true,
    find(endpoint) {
      const url = URL.parse(String(document[endpoint] ?? ""));
      if (url === null) return undefined;
      if (url.protocol !== "https:" && url.origin !== new URL(issuer).origin)
        throw new Error(`The ${endpoint} of ${issuer} has an address without TLS.`);
      return url;
    },
  };
}

/**
 * Makes a request to an issuer and reads the object in its answer.
 *
 * @throws Error with a sentence for people: an issuer that cannot be reached, refuses, or answers something else.
 */
export async function readJson(
  send: Send,
  url: string,
  init?: RequestInit,
): Promise<Readonly<Record<string, unknown>>> {
  const { origin } = new URL(url);
  const response = await send(url, init).catch(() => {
    throw new Error(`${origin} does not answer this page. Does it allow calls from ${globalThis.origin}?`);
  });
  const body: unknown = await response.json().catch(() => undefined);
  const facts = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  if (response.ok && body !== undefined) return facts;
  const reason = facts["error_description"] ?? facts["error"] ?? `status ${response.status}`;
  throw new Error(`${origin} refuses: ${reason}`);
}

/** How the users of a gateway sign in. */
export interface SignInFacts {
  /** Kinds of credentials that the gateway checks. */
  readonly methods: readonly ("api-key" | "token")[];
  /** Whether a call can choose one of several databases. */
  readonly hasDatabases: boolean;
  readonly issuers: readonly Issuer[];
}

/** Asks the gateway how its users sign in. */
export async function readSignInFacts(signal: AbortSignal): Promise<SignInFacts> {
  const response = await fetch("sign-in.json", { signal });
  if (!response.ok) throw new Error(`the ways to sign in cannot be read: ${response.status}`);
  return (await response.json()) as SignInFacts;
}
