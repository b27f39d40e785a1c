import { createHash } from "node:crypto";
import { LanceError } from "../../namespace/errors.ts";
import { backoffMs } from "../../runtime/clocks.ts";
import { whileWaiting } from "../../runtime/promises.ts";
import type { UpstreamCredentials, UpstreamIdentity } from "./identity.ts";
import { createRefusedFetches, type FailureScope, type PausesOptions } from "./refused-fetches.ts";

/** A token, and its expiry. */
export interface Token<T = string> {
  readonly value: T;
  /** In epoch milliseconds. */
  readonly expiresAt: number;
}

/**
 * Keeps a token for each subject, renews it in time, and fetches it once however many callers wait for it. A failed
 * fetch is not repeated for a while. Clients can invent subjects: the cache keeps them as hashes, and they take a
 * place only with a token.
 */
export interface TokenCache<T = string> {
  /**
   * Returns a valid token. From its time of renewal on, the first caller fetches another while the others use the old
   * one; so does every caller while fetches fail and the old token has not expired.
   */
  get(subject: string): T | Promise<T>;
  /**
   * Reports that a token was refused.
   *
   * @returns whether another is available: not for a token that has just been issued.
   */
  refuse(subject: string, value: T): boolean;
  readonly size: number;
}

/** Where the pauses after failed fetches are kept. */
export type TokenPauses = Pick<PausesOptions, "cells" | "owner">;

/** Options of {@link createTokenCache}. */
export interface TokenCacheOptions<T = string> extends TokenPauses {
  fetch(subject: string): Promise<Token<T>>;
  /** Returns the scope of a failed fetch; a failure without a scope is not remembered. Default: the subject. */
  readonly scopeOf?: ((error: unknown) => FailureScope | undefined) | undefined;
  /** How long before its expiry a token is renewed, in milliseconds; a tenth of its life if that is less. */
  readonly renewBeforeMs: number;
  /** Maximum number of tokens; the oldest is evicted first. */
  readonly maxTokens: number;
  /**
   * Age below which a refused token is not replaced, in milliseconds; it doubles while successive tokens are refused,
   * up to a minute. Default: 1,000.
   */
  readonly minAgeMs?: number | undefined;
  /** The time in epoch milliseconds. Default: the system's. */
  readonly now?: (() => number) | undefined;
}

/** Largest value of that age, in milliseconds. */
const LONGEST_MIN_AGE_MS = 60_000;

interface Entry<T> {
  /** Undefined after a refusal. */
  token: Token<T> | undefined;
  readonly issuedAt: number;
  readonly renewAt: number;
  /** Age that the token must have to be replaced after a refusal. */
  readonly minAgeMs: number;
}

/** Creates an empty cache. */
export function createTokenCache<T = string>(options: TokenCacheOptions<T>): TokenCache<T> {
  const { renewBeforeMs, maxTokens, minAgeMs = 1000, now = () => Date.now() } = options;
  const { scopeOf = () => "subject" } = options;
  const entries = new Map<string, Entry<T>>();
  const flights = new Map<string, Promise<T>>();
  const refused = createRefusedFetches({ now, cells: options.cells, owner: options.owner });

  function fetchOnce(subject: string, key: string): Promise<T> {
    const known = flights.get(key);
    if (known !== undefined) return known;
    const flight = fetchInto(subject, key).finally(() => flights.delete(key));
    flights.set(key, flight);
    return flight;
  }

  async function fetchInto(subject: string, key: string): Promise<T> {
    try {
      const token = await options.fetch(subject);
      refused.clear(key);
      const time = now();
      const renewAt = token.expiresAt - Math.min(renewBeforeMs, (token.expiresAt - time) / 10);
      keep(key, { token, issuedAt: time, renewAt, minAgeMs: nextMinAge(entries.get(key), time) });
      return token.value;
    } catch (thrown) {
      const scope = scopeOf(thrown);
      if (scope !== undefined) refused.add(key, scope, thrown);
      throw thrown;
    }
  }

  function keep(key: string, entry: Entry<T>): void {
    entries.set(key, entry);
    const [oldest] = entries.keys();
    if (entries.size > maxTokens && oldest !== undefined) entries.delete(oldest);
  }

  /** Grows while successive tokens are refused soon after they were issued. */
  function nextMinAge(before: Entry<T> | undefined, time: number): number {
    if (before === undefined || before.token !== undefined) return minAgeMs;
    if (time - before.issuedAt >= LONGEST_MIN_AGE_MS) return minAgeMs;
    return backoffMs(1, before.minAgeMs, LONGEST_MIN_AGE_MS);
  }

  return {
    get size() {
      return entries.size;
    },
    get(subject) {
      const key = keyOf(subject);
      const entry = entries.get(key);
      const time = now();
      const token = entry?.token !== undefined && time < entry.token.expiresAt ? entry.token : undefined;
      if (token !== undefined && (time < (entry?.renewAt ?? 0) || flights.has(key))) return token.value;
      const failure = refused.standing(key);
      if (failure !== undefined) return token?.value ?? Promise.reject(failure);
      const fetched = fetchOnce(subject, key);
      if (token === undefined) return fetched;
      // Until the old token expires, an unreachable provider does no harm.
      return fetched.catch((thrown: unknown) => {
        if (now() < token.expiresAt) return token.value;
        throw thrown;
      });
    },
    refuse(subject, value) {
      const entry = entries.get(keyOf(subject));
      if (entry?.token?.value !== value) return true;
      const age = now() - entry.issuedAt;
      // A token from the future is one from before the clock was set back.
      if (age >= 0 && age < entry.minAgeMs) return false;
      entry.token = undefined;
      return true;
    },
  };
}

function keyOf(subject: string): string {
  return createHash("sha256").update(subject).digest("base64");
}

/** Options of {@link createRenewedIdentity}. */
interface RenewedIdentityOptions extends Pick<UpstreamIdentity, "isRefusal"> {
  /** Name of the credentials in errors. */
  readonly name: string;
  fetch(): Promise<Token<UpstreamCredentials>>;
  readonly renewBeforeMs?: number | undefined;
}

/** The only subject: all calls have the same credentials. */
const ITSELF = "";
const RENEW_BEFORE_MS = 300_000;
/** Longest time to find credentials, in milliseconds. */
const FETCH_MS = 10_000;

/** Creates an identity of the gateway itself, whose credentials are renewed before they expire. */
export function createRenewedIdentity(options: RenewedIdentityOptions): UpstreamIdentity {
  const { name, renewBeforeMs = RENEW_BEFORE_MS, isRefusal } = options;
  const cache = createTokenCache<UpstreamCredentials>({
    async fetch() {
      try {
        return await whileWaiting(options.fetch(), AbortSignal.timeout(FETCH_MS));
      } catch (cause) {
        throw new LanceError("ServiceUnavailable", `the gateway has no ${name}`, { cause });
      }
    },
    scopeOf: () => "provider",
    renewBeforeMs,
    maxTokens: 1,
  });
  return {
    isOwn: true,
    ...(isRefusal !== undefined && { isRefusal }),
    credentials(call) {
      const found = cache.get(ITSELF);
      return found instanceof Promise ? whileWaiting(found, call.signal) : found;
    },
    refused: (_, credentials) => cache.refuse(ITSELF, credentials),
  };
}
