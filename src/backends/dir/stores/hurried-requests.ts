import { hedge } from "../../resilience/hedge.ts";
import { RetryBudget } from "../../resilience/retry-budget.ts";
import type { Bucket } from "./bucket.ts";
import { transferMs } from "./time-limits.ts";

/** How long a request is alone before it is made once more, in milliseconds; each further one waits four times as long. */
const FIRST_HEDGE_MS = 500;
const HEDGE_GROWTH = 4;
/** The most requests that are under way beside the first. */
const MAX_HEDGES = 3;
/** What share of the requests may be made once more; a few a second always may. */
const HEDGE_SHARE = 0.1;

/** A bucket that hurries. */
export interface HurriedBucket extends Bucket {
  /** Writes an object whose key nobody else writes or has written, so that the same bytes may land twice. */
  putNew(key: string, bytes: Uint8Array): Promise<void>;
}

/**
 * A bucket whose small reads, and writes of new objects, are made once more, beside the first request, when they take
 * long: services now and then leave one request without an answer, and whoever waits for it would wait until its time
 * limit. The first answer counts, and ends the other requests. A slow service gets little more requests than before,
 * because there is a budget.
 */
export function withHurriedRequests(bucket: Bucket): HurriedBucket {
  const budget = new RetryBudget(HEDGE_SHARE);
  const unending = new AbortController().signal;

  type Make<T> = (signal: AbortSignal) => Promise<T>;

  function hurry<T>(make: Make<T>, signal = unending, bytes = 0): Promise<T> {
    budget.earn();
    return attempt(make, signal, transferMs(bytes), 0);
  }

  function attempt<T>(make: Make<T>, signal: AbortSignal, leastMs: number, hedges: number): Promise<T> {
    if (hedges === MAX_HEDGES) return make(signal);
    return hedge({
      signal,
      afterMs: leastMs + FIRST_HEDGE_MS * HEDGE_GROWTH ** hedges,
      first: make,
      second: () => (budget.take() ? (other) => attempt(make, other, leastMs, hedges + 1) : undefined),
      isAnswer: () => false,
      onWon() {},
    });
  }

  return {
    ...bucket,
    get: (key, signal) => hurry((own) => bucket.get(key, own), signal),
    getPart: (key, range, signal) => hurry((own) => bucket.getPart(key, range, own), signal),
    head: (key, signal) => hurry((own) => bucket.head(key, own), signal),
    putNew: (key, bytes) => hurry((own) => bucket.put(key, bytes, own), undefined, bytes.byteLength),
    page: (query, signal) => hurry((own) => bucket.page(query, own), signal),
  };
}
