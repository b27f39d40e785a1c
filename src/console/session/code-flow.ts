import { discover, type Issuer, readJson } from "./issuer.ts";

/** The parts of a browser that signing in needs. */
export interface Surroundings {
  /** Keeps facts until the tab closes. */
  readonly storage: Pick<Storage, "getItem" | "setItem" | "removeItem">;
  /** Address of the page. */
  readonly address: URL;
  readonly send: (url: string, init?: RequestInit) => Promise<Response>;
}

/** A sign-in for which the browser has left the page. */
interface Pending {
  readonly issuer: Issuer;
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** The part of the address after `#`, to come back to. */
  readonly place: string;
}

/** What a sign-in gives. */
export interface SignedIn {
  readonly issuer: Issuer;
  readonly accessToken: string;
}

const KEY = "lance-gateway-sign-in";

/**
 * Begins a sign-in by authorization code with PKCE (RFC 6749, RFC 7636), and returns the address at the issuer to go to.
 *
 * @throws Error with a sentence for people.
 */
export async function beginSignIn(issuer: Issuer, { storage, address, send }: Surroundings): Promise<URL> {
  if (globalThis.crypto.subtle === undefined)
    throw new Error("Browsers sign in over HTTPS only, except on this machine.");
  const target = (await discover(issuer, send)).find("authorization_endpoint");
  if (target === undefined) throw new Error(`${issuer.issuer} signs nobody in.`);
  const [state, nonce, verifier] = [random(), random(), random()] as const;
  const pending: Pending = { issuer, state, nonce, verifier, place: address.hash };
  storage.setItem(KEY, JSON.stringify(pending));
  const params = {
    ...{ response_type: "code", client_id: issuer.clientId, redirect_uri: redirectUri(address) },
    ...{ scope: issuer.scope, state, nonce },
    ...{ code_challenge: await hashOf(verifier), code_challenge_method: "S256" },
  };
  for (const [name, value] of Object.entries(params)) target.searchParams.set(name, value);
  return target;
}

/** Whether the browser comes back from an issuer. */
export function isReturning({ searchParams }: URL): boolean {
  return searchParams.has("state") && (searchParams.has("code") || searchParams.has("error"));
}

/** Returns the address of the page as it was before the sign-in. */
export function placeBefore({ storage, address }: Pick<Surroundings, "storage" | "address">): string {
  return address.pathname + (pendingOf(storage)?.place ?? "");
}

/**
 * Ends a sign-in: checks the issuer's answer, which is in the address, and exchanges its code for a token.
 *
 * @throws Error with a sentence for people.
 */
export async function endSignIn({ storage, address, send }: Surroundings): Promise<SignedIn> {
  const { searchParams: answer } = address;
  const pending = pendingOf(storage);
  storage.removeItem(KEY);
  if (pending === undefined || answer.get("state") !== pending.state)
    throw new Error("The issuer's answer belongs to another sign-in.");
  const { issuer, nonce, verifier } = pending;
  const metadata = await discover(issuer, send);
  // Else an issuer could have another one's code exchanged (RFC 9207).
  const named = answer.get("iss") ?? (metadata.namesItself ? undefined : issuer.issuer);
  if (named !== issuer.issuer) throw new Error("Another issuer has answered.");
  const code = answer.get("code");
  if (code === null)
    throw new Error(`${issuer.issuer} refuses: ${answer.get("error_description") ?? answer.get("error")}`);
  const endpoint = metadata.find("token_endpoint");
  if (endpoint === undefined) throw new Error(`${issuer.issuer} gives no tokens.`);
  const { access_token, token_type, id_token } = await readJson(send, endpoint.href, {
    method: "POST",
    body: new URLSearchParams({
      ...{ grant_type: "authorization_code", code, code_verifier: verifier },
      ...{ redirect_uri: redirectUri(address), client_id: issuer.clientId },
    }),
  });
  checkIdToken(id_token, issuer, nonce, Date.now());
  if (typeof access_token !== "string" || String(token_type).toLowerCase() !== "bearer")
    throw new Error(`${issuer.issuer} has sent no access token.`);
  return { issuer, accessToken: access_token };
}

/** Returns the address at which the issuer signs its user out; undefined if it has none. */
export async function signOutAddress(
  issuer: Issuer,
  { address, send }: Pick<Surroundings, "address" | "send">,
): Promise<URL | undefined> {
  const target = (await discover(issuer, send)).find("end_session_endpoint");
  target?.searchParams.set("client_id", issuer.clientId);
  target?.searchParams.set("post_logout_redirect_uri", redirectUri(address));
  return target;
}

/** Address to which issuers send the browser back: that of the page, without its query. */
function redirectUri(address: URL): string {
  return new URL(".", address).href;
}

function pendingOf(storage: Pick<Storage, "getItem">): Pending | undefined {
  const kept = storage.getItem(KEY);
  return kept === null ? undefined : (JSON.parse(kept) as Pending);
}

function random(): string {
  return textOf(crypto.getRandomValues(new Uint8Array(32)));
}

async function hashOf(verifier: string): Promise<string> {
  return textOf(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
}

/** Writes bytes in base64url. */
function textOf(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/**
 * Checks that an ID token belongs to a sign-in (OpenID Connect Core 1.0, section 3.1.3.7). Its signature need not be
 * verified: it comes from the issuer directly, over TLS.
 *
 * @throws Error with a sentence for people.
 */
function checkIdToken(token: unknown, { issuer, clientId }: Issuer, nonce: string, now: number): void {
  const { iss, aud, azp, exp, nonce: named } = claimsOf(token);
  const audiences = [aud].flat();
  const isForConsole =
    audiences.includes(clientId) &&
    (audiences.length === 1 || azp !== undefined) &&
    (azp ?? clientId) === clientId;
  if (iss !== issuer || !isForConsole || named !== nonce)
    throw new Error("The issuer's answer belongs to another sign-in.");
  if (typeof exp !== "number" || exp * 1000 <= now - CLOCK_SKEW_MS)
    throw new Error("The issuer's answer has expired. Is the clock of this machine right?");
}

/** Difference between the clocks of the issuer and this machine that does not matter. */
const CLOCK_SKEW_MS = 60_000;

function claimsOf(token: unknown): Readonly<Record<string, unknown>> {
  try {
    const [, body = ""] = String(token).split(".");
    const bytes = Uint8Array.from(atob(body.replaceAll("-", "+").replaceAll("_", "/")), (each) =>
      each.charCodeAt(0),
    );
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new Error("The issuer has sent no ID token.");
  }
}
