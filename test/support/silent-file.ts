import { execFileSync } from "node:child_process";
import { constants } from "node:fs";
import { access, open } from "node:fs/promises";
import { onTestFinished, vi } from "vitest";

/** Makes a named pipe in place of a file: its readers wait, as for a network's file system that does not answer, until the test ends. */
export async function makeSilentFile(path: string): Promise<void> {
  execFileSync("mkfifo", [path]);
  const writer = await open(path, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => writer.close());
}

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
