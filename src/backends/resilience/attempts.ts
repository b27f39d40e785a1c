import type { LanceError } from "../../namespace/errors.ts";
import { backoffMs } from "../../runtime/clocks.ts";
import type { Ending } from "../../runtime/late-signal.ts";

/** Terms of a {@link Budget}, in addition to the share of calls. Default: those of retries. */
interface BudgetTerms {
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

/** Determines the delay before each retry of a call, in milliseconds. */
export class Delays {
  readonly #firstMs: number;
  readonly #maxMs: number;
  #times = 0;

  /**
   * @param firstMs the longest delay before the first retry
   * @param maxMs the longest delay of all
   */
  constructor(firstMs: number, maxMs: number) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
  }

  /** Returns the delay before the next retry; undefined if the upstream asks for a longer delay than the maximum. */
  next(error: LanceError): number | undefined {
    const duration = Math.random() * backoffMs(this.#times++, this.#firstMs, this.#maxMs);
    const asked = retryAfterMs(error.headers["retry-after"]);
    if (asked === undefined) return duration;
    return asked > this.#maxMs ? undefined : asked + duration;
  }
}

/**
 * Returns the value of a `retry-after` header, seconds or a date, in milliseconds from now; undefined for anything
 * else.
 */
export function retryAfterMs(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Waits, unless the signal fires first. */
export function wait(ms: number, signal: Ending): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const leave = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", leave);
      resolve();
    }, ms);
    signal.addEventListener("abort", leave);
  });
}

/** Options of {@link hedge}. */
export interface HedgeOptions<R> {
  /** Ends all attempts. */
  readonly signal: Ending;
  /** How long the first attempt runs alone, in milliseconds. */
  readonly afterMs: number;
  first(signal: AbortSignal): Promise<R>;
  /** Returns a second attempt; undefined if it must not be made. */
  second(): ((signal: AbortSignal) => Promise<R>) | undefined;
  /** Whether a failure counts as an answer. */
  isAnswer(error: unknown): boolean;
  /** Called if the second attempt was first. */
  onWon(): void;
}

/**
 * Makes an attempt, and a second one beside it if the first takes long. The first answer counts and ends the other
 * attempt; a failure counts only when no attempt is left.
 */
export function hedge<R>(options: HedgeOptions<R>): Promise<R> {
  const { signal, afterMs } = options;
  return new Promise((resolve, reject) => {
    const attempts: AbortController[] = [];
    let running = 0;
    let isOver = false;

    function begin(attempt: (signal: AbortSignal) => Promise<R>): void {
      const controller = new AbortController();
      attempts.push(controller);
      running += 1;
      attempt(controller.signal).then(
        (result) => {
          if (isOver) return;
          if (attempts.length > 1 && controller === attempts[1]) options.onWon();
          finish();
          resolve(result);
        },
        (error: unknown) => {
          running -= 1;
          if (isOver || (running > 0 && !options.isAnswer(error))) return;
          finish();
          reject(error);
        },
      );
    }

    const end = () => {
      finish();
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      const attempt = options.second();
      if (attempt !== undefined) begin(attempt);
    }, afterMs);

    function finish(): void {
      isOver = true;
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      const reason = signal.aborted ? signal.reason : new Error("another attempt has answered");
      for (const controller of attempts) controller.abort(reason);
    }

    signal.addEventListener("abort", end);
    if (signal.aborted) end();
    else begin(options.first);
  });
}
