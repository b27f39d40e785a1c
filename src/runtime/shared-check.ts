/**
 * Shares a check among concurrent callers.
 *
 * A caller gets a check that starts after the call: a new one, or, while a check runs, the next one, together with
 * all callers that arrive meanwhile. So a result is never older than the call.
 */
export function createSharedCheck<T>(check: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> | undefined;
  let next: Promise<T> | undefined;

  function start(): Promise<T> {
    const result = check();
    const finished = result.then(
      () => {},
      () => {},
    );
    running = finished;
    void finished.then(() => {
      if (running === finished) running = undefined;
    });
    return result;
  }
  return () => {
    if (running === undefined) return start();
    next ??= running.then(() => {
      next = undefined;
      return start();
    });
    return next;
  };
}
