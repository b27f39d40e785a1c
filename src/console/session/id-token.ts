import type { Issuer } from "./issuer.ts";

/**
 * Checks that an ID token belongs to a sign-in (OpenID Connect Core 1.0, section 3.1.3.7). Its signature need not be
 * verified: it comes from the issuer directly, over TLS.
 *
 * @throws Error with a sentence for people.
 */
export function checkIdToken(token: unknown, { issuer, clientId }: Issuer, nonce: string, now: number): void {
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
