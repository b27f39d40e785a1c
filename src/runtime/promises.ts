/** Returns a function that makes something at its first call, for all calls; if that fails, the next call tries again. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

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

/**
 * Returns a function that waits for work, but not beyond the failure of `end`. It is for work that is repeated, such as the pieces of a
 * stream: `Promise.race` would keep all of its results in memory until `end` fails or is collected itself.
 */
export function beforeEnd(end: Promise<never>): <T>(work: Promise<T>) => Promise<T> {
  let refuse: ((reason: unknown) => void) | undefined;
  let isOver = false;
  end.catch((reason: unknown) => {
    isOver = true;
    refuse?.(reason);
  });
  return (work) =>
    new Promise((resolve, reject) => {
      refuse = reject;
      if (isOver) end.catch(reject);
      work.then(resolve, reject);
    });
}

/** Returns the value of a shared promise, or throws the signal's reason if that is first. */
export function whileWaiting<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}

/**
 * Waits for a request up to a limit, in milliseconds, where what makes it takes no limit, or ignores it. The request goes on, and
 * may be carried out later.
 *
 * @param lateError makes the error after the limit
 */
export async function within<T>(limit: number, request: Promise<T>, lateError: () => Error): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(lateError()), limit);
  try {
    return await Promise.race([request, late]);
  } finally {
    clearTimeout(timer);
  }
}
