import type { Logger } from "pino";
import { monotonicNow } from "../../runtime/time/monotonic.ts";
import { within } from "../../runtime/time/within.ts";
import type { Rate } from "./token-buckets.ts";

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
export interface GuardOptions {
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
