import { isatty } from "node:tty";
import type { Logger } from "pino";
import { redactText } from "../observability/log/redact.ts";
import { ENDING_SIGNALS, exit, exitByForce, ignoreEarlySignals } from "./exit.ts";

/** Signals within this time are the first one: a terminal, npm and a shell may each pass it on. */
const SAME_SIGNAL_MS = 500;

/** Signal by which a process learns that the one that started it has gone (bin/follow-caller.js). */
const CALLER_GONE = "SIGUSR2";

/** Actions that signals start. */
export interface SignalActions {
  /** Drains and closes everything. */
  readonly end: (signal: NodeJS.Signals) => Promise<unknown>;
  /** Reads the configuration again. */
  readonly reload: () => void;
  readonly log: Logger;
}

/**
 * Ends the process by SIGTERM or SIGINT, or when its terminal or its caller has gone. A second SIGTERM or SIGINT ends it at once, also while
 * the file system of a table does not answer. Any other SIGHUP reads the configuration again.
 */
export function handleSignals({ end, reload, log }: SignalActions): void {
  const terminals = [0, 1, 2].filter(isatty);
  let begun: number | undefined;

  function begin(signal: NodeJS.Signals): void {
    begun = performance.now();
    log.info({ signal }, "stopping");
    end(signal).then(
      () => exit(0),
      (error: unknown) => {
        process.stderr.write(`lance-gateway: closing failed: ${redactText(String(error))}\n`);
        return exit(1);
      },
    );
  }
  ignoreEarlySignals();
  for (const signal of ENDING_SIGNALS) {
    process.on(signal, () => {
      if (begun === undefined) begin(signal);
      else if (performance.now() - begun > SAME_SIGNAL_MS) exitByForce();
    });
  }
  process.on(CALLER_GONE, () => {
    if (begun === undefined) begin(CALLER_GONE);
  });
  process.on("SIGHUP", () => {
    if (begun !== undefined) return;
    // A terminal that has hung up no longer counts as one.
    if (terminals.every(isatty)) reload();
    else begin("SIGHUP");
  });
}
