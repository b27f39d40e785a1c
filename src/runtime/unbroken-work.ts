let running = 0;
let onEnd: (() => void) | undefined;
let hasLeft = false;

/** Whether the thread waits for its end, so that nothing new may begin. */
export const isThreadEnding = () => onEnd !== undefined;

/** Whether another thread has taken the place of this one, and its parts of shared memory. */
export const hasThreadLeft = () => hasLeft;

export function noteThreadLeft(): void {
  hasLeft = true;
}

/** Counts work that must have ended before its thread does. */
export function countUnbroken(work: Promise<unknown>): void {
  running += 1;
  const end = () => {
    running -= 1;
    if (running === 0) onEnd?.();
  };
  work.then(end, end);
}

/** Whether such work runs in this thread. */
export const runsUnbrokenWork = () => running > 0;

/**
 * Waits until none of this work runs in this thread. None may begin from now on.
 *
 * @param longestMs longest time to wait, in milliseconds. Default: no bound
 */
export function unbrokenWorkEnded(longestMs?: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = longestMs === undefined ? undefined : setTimeout(resolve, longestMs);
    onEnd = () => {
      clearTimeout(timer);
      resolve();
    };
    if (running === 0) onEnd();
  });
}
