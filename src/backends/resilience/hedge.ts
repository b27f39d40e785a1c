/** What {@link hedge} needs. */
export interface HedgeOptions<R> {
  /** Ends everything. */
  readonly signal: AbortSignal;
  /** How long the first attempt is alone, in milliseconds. */
  readonly afterMs: number;
  first(signal: AbortSignal): Promise<R>;
  /** Begins a second attempt; undefined when there shall be none. */
  second(): ((signal: AbortSignal) => Promise<R>) | undefined;
  /** Whether a failure is as good as an answer. */
  isAnswer(error: unknown): boolean;
  /** The second attempt was first. */
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
