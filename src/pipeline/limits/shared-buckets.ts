import { hash } from "node:crypto";
import type { Logger } from "pino";
import { monotonicNow } from "../../runtime/clocks.ts";
import { putNewest } from "../../runtime/collections.ts";
import { within } from "../../runtime/promises.ts";
import type { Rate, TokenBuckets } from "./rate-limit.ts";

/** Options of {@link createSharedBuckets}. */
export interface SharedBucketsOptions {
  readonly server: GuardedServer;
  /** Name of the limit on the server. */
  readonly name: string;
  readonly rate: Rate;
  /** Buckets that count while the server does not answer. */
  readonly local: TokenBuckets;
  /** Calls of how much time are taken in advance at most, in milliseconds. Default: 100. */
  readonly shareMs?: number;
  /** Number of keys whose tokens are kept. Default: 10,000. */
  readonly maxKeys?: number;
  /** A clock in milliseconds. Default: the monotonic one. */
  readonly now?: () => number;
}

/** Tokens of a key that were taken in advance. */
interface Share {
  tokens: number;
  /** When they are no longer spent. */
  until: number;
  /** When the bucket may have been full again, so that they must not go back. */
  goneAt: number;
  /** When the bucket has a token again. */
  emptyUntil: number;
  /** How many are asked for. */
  size: number;
  waiting: number;
  flight: Promise<boolean> | undefined;
}

/**
 * Creates buckets on a server that other gateways share.
 *
 * A key that is used again and again gets tokens in advance, twice as many each time, up to those of a moment, so that few calls wait
 * for the server. Tokens that are not spent within that moment go back.
 */
export function createSharedBuckets(options: SharedBucketsOptions): TokenBuckets {
  const { server, name, rate, local, shareMs = 100, maxKeys = 10_000, now = monotonicNow } = options;
  const largest = Math.min(rate.burst, Math.max(1, Math.floor((rate.perSecond * shareMs) / 1_000)));
  // In the order of the last call.
  const shares = new Map<string, Share>();

  function shareOf(key: string): Share {
    const share = shares.get(key) ?? {
      ...{ tokens: 0, until: 0, goneAt: 0, emptyUntil: 0, size: 1, waiting: 0, flight: undefined },
    };
    putNewest(shares, key, share, maxKeys);
    return share;
  }

  /** Returns what a call has to wait; undefined if the server has to be asked. */
  function spend(share: Share): number | undefined {
    const time = now();
    if (share.tokens > 0 && time < share.until) {
      share.tokens -= 1;
      return 0;
    }
    return time < share.emptyUntil ? share.emptyUntil - time : undefined;
  }

  /** Asks the server for all calls that wait; returns false if it does not answer. */
  async function refill(key: string, share: Share): Promise<boolean> {
    const asked = now();
    const isSpent = share.tokens === 0 && asked < share.until;
    share.size = isSpent ? Math.min(2 * share.size, largest) : 1;
    const wanted = Math.min(rate.burst, Math.max(share.size, share.waiting));
    const returned = asked < share.goneAt ? share.tokens : 0;
    share.tokens = 0;
    try {
      const bucket = `${name}:${hash("sha256", key, "base64url")}`;
      const { granted, waitMs, fullMs } = await server.take({ bucket, rate, wanted, returned });
      const time = now();
      share.tokens = granted;
      share.until = time + shareMs;
      share.goneAt = asked + fullMs;
      share.emptyUntil = granted < wanted ? time + Math.max(1, waitMs) : 0;
      return true;
    } catch {
      return false;
    } finally {
      share.flight = undefined;
    }
  }

  async function ask(key: string, share: Share): Promise<number> {
    share.waiting += 1;
    try {
      for (;;) {
        share.flight ??= refill(key, share);
        const isAnswered = await share.flight;
        if (!isAnswered) return local.take(key);
        const ms = spend(share);
        if (ms !== undefined) return ms;
      }
    } finally {
      share.waiting -= 1;
    }
  }

  return {
    take(key) {
      const share = shareOf(key);
      const ms = spend(share);
      if (ms !== undefined) return ms;
      return server.isAway && share.flight === undefined ? local.take(key) : ask(key, share);
    },
  };
}

/** Tokens that a gateway wants from a bucket. */
export interface TokenRequest {
  /** Name of the bucket, which begins with that of its limit. */
  readonly bucket: string;
  readonly rate: Rate;
  readonly wanted: number;
  /** Tokens from before that were not spent, and go back first. */
  readonly returned: number;
}

/** Answer of a server of buckets. */
export interface TokenGrant {
  /** Number of tokens, at most as many as were wanted. */
  readonly granted: number;
  /** Time until there is another token, in milliseconds; 0 if there is one. */
  readonly waitMs: number;
  /** Time until the bucket is full if nothing else is taken, in milliseconds. */
  readonly fullMs: number;
}

/** Token buckets on a server that several gateways share. */
export interface BucketServer {
  /**
   * Takes tokens in a single step.
   *
   * @throws Error if the server does not answer
   */
  take(request: TokenRequest): Promise<TokenGrant>;
}

/** A server that is left alone for a while after it has failed. */
export interface GuardedServer extends BucketServer {
  /** Whether the server has just failed, so that nothing should be asked of it. */
  readonly isAway: boolean;
}

/** Options of {@link guardServer}. */
interface GuardOptions {
  readonly log: Logger;
  /** Counts requests that failed. */
  readonly onFailure: () => void;
  /** Longest time for an answer, in milliseconds. Default: 100. */
  readonly timeoutMs?: number;
  /** Time after a failure until the server is asked again, by a single request, in milliseconds. Default: 1,000. */
  readonly pauseMs?: number;
}

/** Bounds the time of a server's answers, and logs when it is lost and found. */
export function guardServer(server: BucketServer, options: GuardOptions): GuardedServer {
  const { log, onFailure, timeoutMs = 100, pauseMs = 1_000 } = options;
  let isLost = false;
  let isProbed = false;
  let awayUntil = 0;
  return {
    get isAway() {
      return isLost && (isProbed || monotonicNow() < awayUntil);
    },
    async take(request) {
      isProbed = isLost;
      try {
        const grant = await within(
          timeoutMs,
          server.take(request),
          () => new Error(`no answer in ${timeoutMs} ms`),
        );
        if (isLost) log.warn("the server of shared rate limits answers again");
        isLost = false;
        return grant;
      } catch (error) {
        onFailure();
        const text =
          "the server of shared rate limits does not answer, so each process limits rates by itself";
        if (!isLost) log.warn({ err: error }, text);
        isLost = true;
        awayUntil = monotonicNow() + pauseMs;
        throw error;
      } finally {
        isProbed = false;
      }
    },
  };
}
