/**
 * Shares a check among those who wait for it.
 *
 * A caller gets a check that begins after the call: the one that starts now, or, while one runs, the next one,
 * together with everybody else who came meanwhile. So a result is never older than the question.
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
