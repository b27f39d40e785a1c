import type { Logger } from "pino";
import { closeGeneration, type Generation } from "./generation.ts";

/** Generations that get no more calls, and may still have running ones. */
export interface FormerGenerations {
  /** Closes what a generation has and the next one does not, once `ended` resolves. */
  retire(former: Generation, next: Generation, ended: Promise<void>): void;
  /** Closes all of them without waiting for their calls. */
  close(): Promise<void>;
}

/** Creates the keeper of former generations. It closes each one once, and logs failures. */
export function createFormerGenerations(log: Logger): FormerGenerations {
  const open = new Set<() => Promise<void>>();
  return {
    retire(former, next, ended) {
      let closing: Promise<void> | undefined;
      const close = () => {
        closing ??= closeGeneration(former, next)
          .catch((error: unknown) => log.error({ err: error }, "the former configuration is not closed"))
          .finally(() => open.delete(close));
        return closing;
      };
      open.add(close);
      void ended.then(close);
    },
    async close() {
      await Promise.all([...open].map((close) => close()));
    },
  };
}
