import type { Logger } from "pino";
import { closeGeneration, type Generation } from "./generation.ts";

/** Generations that get no more calls, and may still have running ones. */
export interface FormerGenerations {
  /**
   * Closes what a generation has, once `ended` resolves, except for what the newest one or another former one uses, which closes with
   * the last of them.
   */
  retire(former: Generation, next: Generation, ended: Promise<void>): void;
  /** Closes all of them without waiting for their calls. */
  close(): Promise<void>;
}

/** Creates the keeper of former generations. It closes each one once, and logs failures. */
export function createFormerGenerations(log: Logger): FormerGenerations {
  const open = new Set<Generation>();
  const closing = new Set<Promise<void>>();
  let newest: Generation | undefined;

  function close(former: Generation): void {
    if (!open.delete(former)) return;
    const inUse = newest === undefined ? [...open] : [newest, ...open];
    const closed = closeGeneration(former, ...inUse)
      .catch((error: unknown) => log.error({ err: error }, "the former configuration is not closed"))
      .finally(() => closing.delete(closed));
    closing.add(closed);
  }
  return {
    retire(former, next, ended) {
      open.add(former);
      newest = next;
      void ended.then(() => close(former));
    },
    async close() {
      for (const former of [...open]) close(former);
      await Promise.all(closing);
    },
  };
}
