import { constants } from "node:os";
import { filesAnswer } from "../runtime/files/files-in-time.ts";
import { runsUnbrokenWork } from "../runtime/threads/unbroken-work.ts";

/** Exit codes of shells and containers above it tell the signal that has ended a process. */
const SIGNALED = 128;

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

/** Has signals end the first process of a container until it handles them: the system keeps those from it that it does not handle. */
export function endByEarlySignals(): void {
  if (process.pid !== 1) return;
  for (const signal of ENDING_SIGNALS) process.on(signal, endEarly);
}

/** Ends what {@link endByEarlySignals} has begun. */
export function ignoreEarlySignals(): void {
  for (const signal of ENDING_SIGNALS) process.off(signal, endEarly);
}

function endEarly(signal: NodeJS.Signals): void {
  exitInPlace(SIGNALED + constants.signals[signal]);
}
