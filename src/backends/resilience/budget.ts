/** Terms of a {@link Budget}, in addition to the share of calls. Default: those of retries. */
export interface BudgetTerms {
  /** Number per second that is free, however few calls there are. Default: 3. */
  readonly perSecond?: number;
  /** Number at the beginning. Default: 10. */
  readonly first?: number;
}

/** Maximum number that is saved up. */
const CAPACITY = 100;

/**
 * Bounds the retries of an upstream's calls, so that an upstream in trouble gets little more than its share, and other
 * costs of calls: every call earns a part of one, and so does time.
 */
export class Budget {
  readonly #share: number;
  readonly #perSecond: number;
  #tokens: number;
  #filledAt = Date.now();

  /** @param share what each call earns, from 0 to 1 */
  constructor(share: number, { perSecond = 3, first = 10 }: BudgetTerms = {}) {
    this.#share = share;
    this.#perSecond = perSecond;
    this.#tokens = first;
  }

  /** Counts a call. */
  earn(): void {
    this.#tokens = Math.min(CAPACITY, this.#tokens + this.#share);
  }

  /** Takes one, for example a retry; returns whether there was one. */
  take(): boolean {
    const now = Date.now();
    // The clock may have been set back.
    const seconds = Math.max(0, now - this.#filledAt) / 1000;
    this.#filledAt = now;
    this.#tokens = Math.min(CAPACITY, this.#tokens + seconds * this.#perSecond);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
