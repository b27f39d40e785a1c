import { constants } from "node:os";
import { isatty } from "node:tty";
import type { Logger } from "pino";
import { redactText } from "../observability/log/redact.ts";
import { filesAnswer } from "../runtime/files/files-in-time.ts";
import { hasThreadLeft, runsUnbrokenWork } from "../runtime/threads/unbroken-work.ts";

/** Exit codes of shells and containers above it tell the signal that has ended a process. */
const SIGNALED = 128;

/** Standard streams that are terminals. After a terminal has hung up, its stream no longer counts as such. */
const TERMINALS = [0, 1, 2].filter(isatty);

/** Whether SIGHUP has come while the gateway started. */
let hasHungUp = false;

/** Signals that end the process. */
export const ENDING_SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** Ends the process; by force if its end would wait for a file that does not answer. */
export async function exit(code: number): Promise<void> {
  if (!(await filesAnswer())) exitByForce();
  // The end of the threads would abort the process (docs/adr/0058).
  if (runsUnbrokenWork()) exitInPlace(code);
  process.exit(code);
}

/** Ends the process, which would otherwise wait for the work of all its threads. */
export function exitByForce(): void {
  process.kill(process.pid, "SIGKILL");
  // The first process of a container goes on: the system keeps its own signals from it.
  exitInPlace(SIGNALED + constants.signals.SIGKILL);
}

/** Replaces the process by a program that ends at once, and so ends all threads without their doing. Windows cannot do so. */
function exitInPlace(code: number): void {
  const environment = { ...process.env, NODE_OPTIONS: "" };
  process.execve?.(process.execPath, [process.execPath, "--eval", `process.exit(${code})`], environment);
}

/**
 * Handles the signals of a gateway that starts, until {@link handleSignals} does. SIGHUP would end it, and waits, unless its terminal
 * has hung up. The others end the first process of a container: the system keeps signals from it that it does not handle.
 */
export function handleEarlySignals(): void {
  process.on("SIGHUP", noteHangup);
  if (process.pid !== 1) return;
  for (const signal of ENDING_SIGNALS) process.on(signal, endEarly);
}

function noteHangup(signal: NodeJS.Signals): void {
  if (!TERMINALS.every(isatty)) endEarly(signal);
  hasHungUp = true;
}

function endEarly(signal: NodeJS.Signals): void {
  exitInPlace(SIGNALED + constants.signals[signal]);
}

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

/** Signals within this time are the first one: a terminal, npm and a shell may each pass it on. */
const SAME_SIGNAL_MS = 500;

/** Signal by which a process learns that the one that started it has gone (bin/follow-caller.js). */
const CALLER_GONE = "SIGUSR2";

/** Actions that signals start. */
interface SignalActions {
  /** Drains and closes everything. */
  readonly end: (signal: NodeJS.Signals) => Promise<unknown>;
  /** Reads the configuration again. */
  readonly reload: () => void;
  readonly log: Logger;
}

/**
 * Ends the process by SIGTERM or SIGINT, or when its terminal or its caller has gone. A second SIGTERM or SIGINT ends it at once, also while
 * the file system of a table does not answer. Any other SIGHUP, also one from before, reads the configuration again.
 */
export function handleSignals({ end, reload, log }: SignalActions): void {
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
  function hangUp(): void {
    if (begun !== undefined) return;
    if (TERMINALS.every(isatty)) reload();
    else begin("SIGHUP");
  }
  for (const signal of ENDING_SIGNALS) {
    process.off(signal, endEarly);
    process.on(signal, () => {
      if (begun === undefined) begin(signal);
      else if (performance.now() - begun > SAME_SIGNAL_MS) exitByForce();
    });
  }
  process.on(CALLER_GONE, () => {
    if (begun === undefined) begin(CALLER_GONE);
  });
  process.off("SIGHUP", noteHangup);
  process.on("SIGHUP", hangUp);
  if (hasHungUp) hangUp();
}
