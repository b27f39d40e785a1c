import { hash } from "node:crypto";
import { claimAt, type Principal, roleOf, textsOf } from "../../namespace/call/principal.ts";
import type { Way } from "../authenticator.ts";
import type { Keys } from "./key-set.ts";
import {
  CHALLENGE,
  invalidToken,
  type TrustedIssuer,
  type Verifier,
  verifierOf,
  verifyToken,
} from "./verify.ts";

/** Longest token, in characters: what fits into the headers of a request. */
const MAX_TOKEN_LENGTH = 16 * 1024;

/** Options of {@link proveByTokens}. */
export interface TokenWayOptions {
  readonly verifiers: readonly Verifier[];
  /** Whether upstreams get the tokens, too. Default: false. */
  readonly passesOn?: boolean | undefined;
}

/** Proves callers by bearer tokens that trusted issuers have signed. */
export function proveByTokens({ verifiers, passesOn = false }: TokenWayOptions): Way {
  const byIssuer = new Map(verifiers.map((verifier) => [verifier.issuer.issuer, verifier]));
  const verified = createVerifiedTokens();

  async function verify(token: string, verifier: Verifier): Promise<Principal> {
    const { current } = verifier.keys;
    // Keys that change meanwhile may lack the one of this token.
    const keys = current();
    const claims = await verifyToken(token, verifier);
    const principal = principalOf(token, claims, verifier.issuer);
    if (keys !== undefined) verified.add(token, { principal, expiresAt: claims.exp * 1000, keys, current });
    return principal;
  }

  return {
    needs: "a bearer token, in the header authorization or in the request's identity.auth_token",
    challenge: CHALLENGE,
    isInMessage: true,
    ends: passesOn ? [] : ["authToken"],
    prove({ identity: { authToken } }) {
      if (authToken === undefined) return undefined;
      if (authToken.length > MAX_TOKEN_LENGTH) throw invalidToken("the token is too long");
      return verified.find(authToken) ?? verify(authToken, verifierOf(authToken, byIssuer));
    },
    close() {},
  };
}

type Claims = Readonly<Record<string, unknown>>;

/** Most groups of a caller; more of them would make every decision slow. */
const MAX_GROUPS = 1_000;
const MAX_NAME_LENGTH = 512;
const MAX_ID_LENGTH = 128;
/** Start of the names and groups that only Kubernetes gives. */
const RESERVED = "system:";
/** Control characters, and halves of surrogate pairs. */
const NO_TEXT = /[\p{Cc}\p{Cs}]/u;

/**
 * Returns the caller that the claims of a verified token name.
 *
 * @throws LanceError Unauthenticated for claims that the issuer must have and has not, and for names that nobody may have.
 */
export function principalOf(token: string, claims: Claims, issuer: TrustedIssuer): Principal {
  for (const [claim, value] of issuer.requiredClaims) {
    if (!textsOf(claimAt(claims, claim)).includes(value))
      throw invalidToken("the token lacks a claim that the gateway requires");
  }
  const { by, prefix } = issuer;
  const facts = { name: prefix + nameOf(claims, issuer), groups: groupsOf(claims, issuer), claims };
  const role = roleOf(issuer.grants, facts);
  return { by, ...facts, credentialId: idOf(token, claims), role };
}

function nameOf(claims: Claims, { nameClaim, by, prefix }: TrustedIssuer): string {
  const name = claimAt(claims, nameClaim);
  if (typeof name !== "string" || name === "" || name.length > MAX_NAME_LENGTH || NO_TEXT.test(name))
    throw invalidToken("the token does not name its caller");
  // Anybody can enter the address of somebody else until the issuer has asked there.
  if (nameClaim === "email" && (claims["email_verified"] ?? true) !== true)
    throw invalidToken("the address of the token's caller is not verified");
  if (by !== "kubernetes" && (prefix + name).startsWith(RESERVED))
    throw invalidToken("the token has a name that only Kubernetes gives");
  return name;
}

function groupsOf(claims: Claims, { groupsClaim, by, prefix }: TrustedIssuer): readonly string[] {
  if (by === "kubernetes") return groupsOfServiceAccount(claims);
  const groups = [claimAt(claims, groupsClaim) ?? []].flat();
  if (groups.length > MAX_GROUPS) throw invalidToken(`the token has more than ${MAX_GROUPS} groups`);
  return groups.map((group) => {
    if (typeof group !== "string" || !group.isWellFormed())
      throw invalidToken("the token has groups that are no texts");
    if ((prefix + group).startsWith(RESERVED))
      throw invalidToken("the token has a group that only Kubernetes gives");
    return prefix + group;
  });
}

const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):[^:]+$/;

/** Returns the groups that Kubernetes gives to a service account. */
function groupsOfServiceAccount({ sub }: Claims): readonly string[] {
  const [, namespace] = SERVICE_ACCOUNT.exec(String(sub)) ?? [];
  if (namespace === undefined) throw invalidToken("the token is not that of a service account");
  return ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
}

/** Returns the id that the issuer has given to a token, or a part of its hash. */
function idOf(token: string, { jti }: Claims): string {
  if (typeof jti === "string" && jti !== "" && jti.length <= MAX_ID_LENGTH) return jti;
  return `sha256:${hash("sha256", token, "hex").slice(0, 16)}`;
}

/** A token that was verified. */
interface VerifiedToken {
  readonly principal: Principal;
  /** In epoch milliseconds. */
  readonly expiresAt: number;
  /** Issuer's keys before it was verified. */
  readonly keys: Keys;
  /** Returns the issuer's keys now. */
  current(): Keys | undefined;
}

/** Remembers verified tokens by their hashes, so that a token is verified once and its text is not kept. */
interface VerifiedTokens {
  /** Returns the caller of a token that was verified, has not expired, and whose issuer's keys have not changed. */
  find(token: string): Principal | undefined;
  add(token: string, verified: VerifiedToken): void;
}

/** Bounds of {@link createVerifiedTokens}. */
interface VerifiedTokensLimits {
  /** Maximum number of tokens. Default: 10,000. */
  readonly maxTokens?: number;
  /** Maximum length of all tokens together, in characters; their claims take memory. Default: 16 Mi. */
  readonly maxCharacters?: number;
}

interface Entry extends VerifiedToken {
  readonly length: number;
}

/** Creates an empty memory. It forgets the token first that was used longest ago. */
export function createVerifiedTokens(limits: VerifiedTokensLimits = {}): VerifiedTokens {
  const { maxTokens = 10_000, maxCharacters = 16 * 2 ** 20 } = limits;
  const entries = new Map<string, Entry>();
  let characters = 0;

  function forget(key: string, { length }: Entry): void {
    entries.delete(key);
    characters -= length;
  }

  function keep(key: string, entry: Entry): void {
    entries.set(key, entry);
    characters += entry.length;
    for (const [oldest, each] of entries) {
      if (entries.size <= maxTokens && characters <= maxCharacters) return;
      forget(oldest, each);
    }
  }

  return {
    find(token) {
      const key = keyOf(token);
      const found = entries.get(key);
      if (found === undefined) return undefined;
      forget(key, found);
      if (found.expiresAt <= Date.now() || found.keys !== found.current()) return undefined;
      keep(key, found);
      return found.principal;
    },
    add(token, verified) {
      const key = keyOf(token);
      const before = entries.get(key);
      if (before !== undefined) forget(key, before);
      keep(key, { ...verified, length: token.length });
    },
  };
}

function keyOf(token: string): string {
  return hash("sha256", token, "base64");
}
