import { type Grant, ROLE_NAMES } from "../namespace/call/principal.ts";
import { isLoopbackAddress } from "../runtime/loopback.ts";
import { isJsonObject } from "../runtime/text.ts";
import { checkKeys, type Section, subsection, textAt } from "./config-file.ts";
import { UsageError } from "./option-spec.ts";
import { parseChoice, parseDuration, parseText } from "./parsers.ts";

/** Algorithms by which a token may be signed: none of them has a secret that the verifier knows, too. */
export const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;

/** An issuer of tokens in the configuration; what it leaves out, other options say for all issuers. */
export interface IssuerSetting {
  readonly issuer: string;
  /** Default: those of `--oidc-audience`. */
  readonly audiences?: readonly string[] | undefined;
  /** Default: all that are known. */
  readonly algorithms?: readonly string[] | undefined;
  /** In milliseconds. Default: 30 s. */
  readonly clockSkewMs?: number | undefined;
  readonly requiredClaims?: readonly (readonly [name: string, value: string])[] | undefined;
  readonly nameClaim?: string | undefined;
  readonly groupsClaim?: string | undefined;
  readonly prefix?: string | undefined;
  /** Default: those of `--grant`. */
  readonly grants?: readonly Grant[] | undefined;
  readonly jwksUri?: string | undefined;
  readonly caFile?: string | undefined;
  /** Default: that of `--console-oidc-client-id`. */
  readonly consoleClientId?: string | undefined;
  /** Default: those of `--console-oidc-scope`. */
  readonly consoleScope?: string | undefined;
}

const KEYS = [
  "issuer",
  "audience",
  "algorithms",
  "clock-skew",
  "required-claims",
  "name-claim",
  "groups-claim",
  "prefix",
  "grant",
  "jwks-uri",
  "ca-file",
  "console-client-id",
  "console-scope",
] as const;

/**
 * Parses an issuer: its address, or a JSON object with its settings.
 *
 * @throws UsageError
 */
export function parseIssuer(text: string): IssuerSetting {
  if (!text.startsWith("{")) return { issuer: parseServerAddress(text) };
  const entries: unknown = JSON.parse(text);
  if (!isJsonObject(entries)) throw new UsageError("must be an address or a map");
  try {
    return issuerOf({ entries, at: "" });
  } catch (error) {
    throw new UsageError(`has a mistake: ${(error as Error).message}`);
  }
}

function issuerOf(section: Section): IssuerSetting {
  checkKeys(section, KEYS);
  const parsed = <T>(key: (typeof KEYS)[number], parse: (text: string) => T): T | undefined => {
    const text = textAt(section, key);
    return text === undefined ? undefined : named(key, () => parse(text));
  };
  const all = <T>(key: (typeof KEYS)[number], parse: (text: string) => T): T[] | undefined => {
    const value = section.entries[key];
    if (value === undefined || value === null) return undefined;
    return [value].flat().map((each) => named(key, () => parse(typeof each === "string" ? each : "")));
  };
  const issuer = parsed("issuer", parseServerAddress);
  if (issuer === undefined) throw new UsageError("issuer is missing");
  const required = subsection(section, "required-claims")?.entries ?? {};
  return {
    issuer,
    audiences: all("audience", parseText),
    algorithms: all("algorithms", parseChoice(ALGORITHMS)),
    clockSkewMs: parsed("clock-skew", parseDuration),
    requiredClaims: Object.entries(required).map(([name, value]) => [name, String(value)]),
    nameClaim: parsed("name-claim", parseText),
    groupsClaim: parsed("groups-claim", parseText),
    prefix: parsed("prefix", parseText),
    grants: all("grant", parseGrant),
    jwksUri: parsed("jwks-uri", parseServerAddress),
    caFile: parsed("ca-file", parseText),
    consoleClientId: parsed("console-client-id", parseText),
    consoleScope: parsed("console-scope", parseOpenIdScope),
  };
}

function named<T>(key: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new UsageError(`${key} ${(error as Error).message}`);
  }
}

/** Parses the address of a server that the gateway believes: `https:`, or `http:` on this machine. */
export function parseServerAddress(text: string): string {
  const { protocol, hostname = "", username, search, hash } = URL.parse(text) ?? {};
  const isPlain = username === "" && search === "" && hash === "";
  if (isPlain && (protocol === "https:" || (protocol === "http:" && isThisMachine(hostname)))) return text;
  throw new UsageError(
    "must be an address such as https://login.example.com; without TLS only on this machine",
  );
}

/** Parses scopes of OpenID Connect, without which the console gets no ID token. */
export function parseOpenIdScope(text: string): string {
  const scopes = text.split(" ").filter((scope) => scope !== "");
  if (scopes.includes("openid")) return scopes.join(" ");
  throw new UsageError("must have openid among its scopes, such as openid profile");
}

function isThisMachine(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return host === "localhost" || isLoopbackAddress(host);
}

const GRANT = /^(\w+)=(?:(anyone)|(name|group|scope):(.+)|claim:([^=]+)=(.+))$/s;

/** Parses a grant, such as `writer=group:data-eng`, `reader=anyone` or `owner=claim:department=platform`. */
export function parseGrant(text: string): Grant {
  const [, given, anyone, kind, value = "", claim, claimed = ""] = GRANT.exec(text) ?? [];
  const role = ROLE_NAMES.find((name) => name === given);
  if (role === undefined) {
    throw new UsageError(
      "must be a role and its callers, such as writer=group:data, reader=scope:lance.read, owner=name:ann, reader=claim:team=data or reader=anyone",
    );
  }
  if (anyone !== undefined) return { role, to: { kind: "anyone" } };
  if (claim !== undefined) return { role, to: { kind: "claim", claim, value: claimed } };
  return { role, to: { kind: kind as "name" | "group" | "scope", value } };
}
