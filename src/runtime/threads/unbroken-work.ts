import type { SharedQuantity } from "./sharing.ts";

const running = new Set<Promise<unknown>>();
let shared: SharedQuantity | undefined;
let onEnd: (() => void) | undefined;
let hasLeft = false;

/** Whether the thread waits for its end, so that nothing new may begin. */
export const isThreadEnding = () => onEnd !== undefined;

/** Whether another thread has taken the place of this one, and its parts of shared memory. */
export const hasThreadLeft = () => hasLeft;

export function noteThreadLeft(): void {
  hasLeft = true;
}

/** Has the amount of such work in this thread seen by others from now on. */
export function shareUnbroken(quantity: SharedQuantity): void {
  shared = quantity;
}

/** Remembers work that must have ended before its thread does. */
export function countUnbroken(work: Promise<unknown>): void {
  running.add(work);
  shared?.publish(running.size);
  awaitEnd(work);
}

function awaitEnd(work: Promise<unknown>): void {
  const end = () => {
    running.delete(work);
    shared?.publish(running.size);
    if (running.size === 0) onEnd?.();
  };
  work.then(end, end);
}

/** Whether such work runs in this thread. */
export const runsUnbrokenWork = () => running.size > 0;

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
    if (running.size === 0) onEnd();
    // Of a thread that was interrupted, V8 drops what it had still to call back.
    for (const work of running) awaitEnd(work);
  });
}
