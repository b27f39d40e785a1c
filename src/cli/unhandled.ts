import type { Logger } from "pino";
import { unbrokenWorkEnded } from "../runtime/unbroken-work.ts";

/** How long the end waits for work that must not be broken off, in milliseconds; builds of indices take longer. */
const LONGEST_WAIT_MS = 10_000;

/**
 * A rejection that nobody handles belongs to work that nobody waits for, so that the process goes on. After an exception
 * that nobody catches, nothing is known of the state of what threw it: the process or the worker ends, and says why. A worker
 * waits for the calls of the engine that run, because its end would abort the process (docs/adr/0058).
 */
export function watchForUnhandled(log: Logger, what: "process" | "worker"): void {
  process.on("unhandledRejection", (reason) => {
    log.error({ err: reason }, "work that nobody waits for has failed");
  });
  process.on("uncaughtException", (error) => {
    log.fatal({ err: error }, `the ${what} ends after an exception that nobody caught`);
    void unbrokenWorkEnded(LONGEST_WAIT_MS).then(() => process.exit(1));
  });
}
