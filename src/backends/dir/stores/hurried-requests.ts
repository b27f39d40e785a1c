import { hedge } from "../../resilience/hedge.ts";
import { Budget } from "../../resilience/retries.ts";
import type { Bucket } from "./bucket.ts";
import { transferMs } from "./time-limits.ts";

/** Time after which a request is hedged, in milliseconds; each further hedge waits four times as long. */
const FIRST_HEDGE_MS = 500;
const HEDGE_GROWTH = 4;
/** Maximum number of requests in flight beside the first. */
const MAX_HEDGES = 3;
/** Share of the requests that may be hedged; a few a second always may. */
const HEDGE_SHARE = 0.1;

/** A bucket with hedged requests. */
export interface HurriedBucket extends Bucket {
  /** Writes an object with a unique key, so that equal bytes may land twice. */
  putNew(key: string, bytes: Uint8Array): Promise<void>;
}

/**
 * Returns a bucket that hedges small reads, and writes of new objects: if a request takes long, it is sent again
 * beside the first, because services now and then leave a request without an answer. The first answer wins and
 * cancels the other requests. A budget keeps a slow service from getting many more requests than before.
 */
export function withHurriedRequests(bucket: Bucket): HurriedBucket {
  const budget = new Budget(HEDGE_SHARE);
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
    getTagged: (key, signal) => hurry((own) => bucket.getTagged(key, own), signal),
    getPart: (key, range, signal) => hurry((own) => bucket.getPart(key, range, own), signal),
    head: (key, signal) => hurry((own) => bucket.head(key, own), signal),
    putNew: (key, bytes) => hurry((own) => bucket.put(key, bytes, own), undefined, bytes.byteLength),
    page: (query, signal) => hurry((own) => bucket.page(query, own), signal),
  };
}
