import { createHash } from "node:crypto";
import { createRefusedFetches, type FailureScope } from "./refused-fetches.ts";

/** A token, and how long it may be used. */
export interface Token<T = string> {
  readonly value: T;
  /** In epoch milliseconds. */
  readonly expiresAt: number;
}

/**
 * Keeps one token for each subject, renews it in time, and fetches it once however many wait for it. A fetch that failed is
 * not made again for a while. Subjects are the clients' to make up: they are kept as hashes, and take a place only when
 * there is a token for them.
 */
export interface TokenCache<T = string> {
  /**
   * A token that is still good. From its time of renewal on, the first to ask fetches another while the others go on
   * with the old one; so does everyone when the fetching fails and the old one has not ended.
   */
  get(subject: string): T | Promise<T>;
  /**
   * Tells that a token was refused.
   *
   * @returns whether another can be had: not for one that has just been issued.
   */
  refuse(subject: string, value: T): boolean;
  readonly size: number;
}

/** What {@link createTokenCache} needs. */
export interface TokenCacheOptions<T = string> {
  fetch(subject: string): Promise<Token<T>>;
  /** What a failure of a fetch is about; one that is about neither is not remembered. Default: the subject. */
  readonly scopeOf?: ((error: unknown) => FailureScope | undefined) | undefined;
  /** How long before its end a token is renewed, in milliseconds; a tenth of its life if that is less. */
  readonly renewBeforeMs: number;
  /** The most tokens; the one that was fetched first goes first. */
  readonly maxTokens: number;
  /**
   * A refused token of less than this age is not replaced, in milliseconds; it doubles while one token after the other is
   * refused, up to a minute. Default: 1,000.
   */
  readonly minAgeMs?: number | undefined;
  /** The time in epoch milliseconds. Default: the system's. */
  readonly now?: (() => number) | undefined;
}

/** The longest time that a refused token has to be old to be replaced, in milliseconds. */
const LONGEST_MIN_AGE_MS = 60_000;

interface Entry<T> {
  /** Undefined after it was refused. */
  token: Token<T> | undefined;
  readonly issuedAt: number;
  readonly renewAt: number;
  /** How old the token has to be to be replaced when it is refused. */
  readonly minAgeMs: number;
}

/** Creates an empty cache. */
export function createTokenCache<T = string>(options: TokenCacheOptions<T>): TokenCache<T> {
  const { renewBeforeMs, maxTokens, minAgeMs = 1000, now = () => Date.now() } = options;
  const { scopeOf = () => "subject" } = options;
  const entries = new Map<string, Entry<T>>();
  const flights = new Map<string, Promise<T>>();
  const refused = createRefusedFetches(now);

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

  /** Grows while one token after the other is refused soon after it was issued. */
  function nextMinAge(before: Entry<T> | undefined, time: number): number {
    if (before === undefined || before.token !== undefined) return minAgeMs;
    if (time - before.issuedAt >= LONGEST_MIN_AGE_MS) return minAgeMs;
    return Math.min(before.minAgeMs * 2, LONGEST_MIN_AGE_MS);
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
      // Until the old one ends, a provider that cannot be reached does no harm.
      return fetched.catch((thrown: unknown) => {
        if (now() < token.expiresAt) return token.value;
        throw thrown;
      });
    },
    refuse(subject, value) {
      const entry = entries.get(keyOf(subject));
      if (entry?.token?.value !== value) return true;
      if (now() - entry.issuedAt < entry.minAgeMs) return false;
      entry.token = undefined;
      return true;
    },
  };
}

function keyOf(subject: string): string {
  return createHash("sha256").update(subject).digest("base64");
}
