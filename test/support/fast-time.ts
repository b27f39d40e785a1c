import { access } from "node:fs/promises";
import { vi } from "vitest";

/** Waits for work whose timers run fast. */
export async function inFastTime<T>(work: () => Promise<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  let isOver = false;
  try {
    const result = work().finally(() => {
      isOver = true;
    });
    while (!isOver) {
      // Files that answer do so before the next step.
      await access("/");
      await vi.advanceTimersByTimeAsync(100);
    }
    return await result;
  } finally {
    vi.useRealTimers();
  }
}
