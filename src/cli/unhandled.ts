import type { Logger } from "pino";
import { hasThreadLeft } from "../runtime/threads/unbroken-work.ts";

/**
 * A rejection that nobody handles belongs to work that nobody waits for, so that the process goes on. After an exception
 * that nobody catches, nothing is known of the state of what threw it: the process or the worker ends, and says why.
 *
 * @param end ends it; called for each exception
 */
export function watchForUnhandled(log: Logger, what: "process" | "worker", end: () => void): void {
  process.on("unhandledRejection", (reason) => {
    log.error({ err: reason }, "work that nobody waits for has failed");
  });
  process.on("uncaughtException", (error) => {
    // Code that was interrupted may throw at each turn of the event loop.
    if (hasThreadLeft()) return;
    log.fatal({ err: error }, `the ${what} ends after an exception that nobody caught`);
    end();
  });
}
