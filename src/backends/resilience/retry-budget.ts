/** Number of retries per second that are free, however few calls there are. */
const FREE_PER_SECOND = 3;
/** Maximum number of accumulated retries. */
const CAPACITY = 100;
const FIRST_TOKENS = 10;

/**
 * Bounds the retries of an upstream's calls, so that an upstream in trouble gets little more than its share: every
 * call earns a part of a retry, and so does time.
 */
export class RetryBudget {
  readonly #share: number;
  #tokens = FIRST_TOKENS;
  #filledAt = Date.now();

  /** @param share retries that each call earns, from 0 to 1 */
  constructor(share: number) {
    this.#share = share;
  }

  /** Counts a call. */
  earn(): void {
    this.#tokens = Math.min(CAPACITY, this.#tokens + this.#share);
  }

  /** Takes a retry; returns whether there was one. */
  take(): boolean {
    const now = Date.now();
    // The clock may have been set back.
    const seconds = Math.max(0, now - this.#filledAt) / 1000;
    this.#filledAt = now;
    this.#tokens = Math.min(CAPACITY, this.#tokens + seconds * FREE_PER_SECOND);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
