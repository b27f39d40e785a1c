/** A token, and how long it may be used. */
export interface Token {
  readonly value: string;
  /** In epoch milliseconds. */
  readonly expiresAt: number;
}

/** Keeps one token for each subject, renews it in time, and fetches it once however many wait for it. */
export interface TokenCache {
  /**
   * A token that is still good. From its time of renewal on, the first to ask fetches another while the others go on
   * with the old one; so does everyone when the fetching fails and the old one has not ended.
   */
  get(subject: string): string | Promise<string>;
  /**
   * Tells that a token was refused.
   *
   * @returns whether another can be had: not for one that has just been issued.
   */
  refuse(subject: string, value: string): boolean;
  readonly size: number;
}

/** What {@link createTokenCache} needs. */
export interface TokenCacheOptions {
  fetch(subject: string): Promise<Token>;
  /** How long before its end a token is renewed, in milliseconds; a tenth of its life if that is less. */
  readonly renewBeforeMs: number;
  /** The most tokens; the one that was fetched first goes first. */
  readonly maxTokens: number;
  /** A refused token of less than this age is not replaced, in milliseconds. Default: 1,000. */
  readonly minAgeMs?: number | undefined;
  /** The time in epoch milliseconds. Default: the system's. */
  readonly now?: (() => number) | undefined;
}

interface Entry {
  token: Token | undefined;
  issuedAt: number;
  renewAt: number;
  pending: Promise<string> | undefined;
}

/** Creates an empty cache. */
export function createTokenCache(options: TokenCacheOptions): TokenCache {
  const { renewBeforeMs, maxTokens, minAgeMs = 1000, now = () => Date.now() } = options;
  const entries = new Map<string, Entry>();

  function renew(subject: string, entry: Entry): Promise<string> {
    entry.pending ??= fetchInto(subject, entry);
    return entry.pending;
  }

  async function fetchInto(subject: string, entry: Entry): Promise<string> {
    try {
      const token = await options.fetch(subject);
      const life = token.expiresAt - now();
      entry.token = token;
      entry.issuedAt = now();
      entry.renewAt = token.expiresAt - Math.min(renewBeforeMs, life / 10);
      return token.value;
    } catch (thrown) {
      if (entry.token === undefined) entries.delete(subject);
      throw thrown;
    } finally {
      entry.pending = undefined;
    }
  }

  function entryOf(subject: string): Entry {
    const known = entries.get(subject);
    if (known !== undefined) return known;
    if (entries.size >= maxTokens) {
      for (const [first, { pending }] of entries) {
        if (pending !== undefined) continue;
        entries.delete(first);
        break;
      }
    }
    const entry: Entry = { token: undefined, issuedAt: 0, renewAt: 0, pending: undefined };
    entries.set(subject, entry);
    return entry;
  }

  return {
    get size() {
      return entries.size;
    },
    get(subject) {
      const entry = entryOf(subject);
      const { token } = entry;
      const time = now();
      if (token === undefined || time >= token.expiresAt) return renew(subject, entry);
      if (time < entry.renewAt || entry.pending !== undefined) return token.value;
      // Until the old one ends, a provider that cannot be reached does no harm.
      return renew(subject, entry).catch((thrown: unknown) => {
        if (now() < token.expiresAt) return token.value;
        throw thrown;
      });
    },
    refuse(subject, value) {
      const entry = entries.get(subject);
      if (entry?.token?.value !== value) return true;
      if (now() - entry.issuedAt < minAgeMs) return false;
      entry.token = undefined;
      return true;
    },
  };
}
