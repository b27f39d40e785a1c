import { hash } from "node:crypto";
import type { Principal } from "../../namespace/call/principal.ts";
import type { Keys } from "./key-set.ts";

/** A token that was verified. */
export interface VerifiedToken {
  readonly principal: Principal;
  /** In epoch milliseconds. */
  readonly expiresAt: number;
  /** Issuer's keys before it was verified. */
  readonly keys: Keys;
  /** Returns the issuer's keys now. */
  current(): Keys | undefined;
}

/** Remembers verified tokens by their hashes, so that a token is verified once and its text is not kept. */
export interface VerifiedTokens {
  /** Returns the caller of a token that was verified, has not expired, and whose issuer's keys have not changed. */
  find(token: string): Principal | undefined;
  add(token: string, verified: VerifiedToken): void;
}

/** Bounds of {@link createVerifiedTokens}. */
export interface VerifiedTokensLimits {
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
