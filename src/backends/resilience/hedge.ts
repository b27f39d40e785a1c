import type { Ending } from "../../runtime/late-signal.ts";

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
