import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Starts a program as the first process of a namespace, as a container does. */
export const AS_FIRST = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"];

/** Whether the system lets this user make namespaces. */
export function mayUnshare(): boolean {
  const [command = "", ...args] = AS_FIRST;
  return spawnSync(command, [...args, "true"]).status === 0;
}

/** Sends a signal to the program that a starter has started, if that still runs. */
export function signalFirst(starter: number | undefined, signal: NodeJS.Signals): void {
  const child = Number(readFileSync(`/proc/${starter}/task/${starter}/children`, "utf8"));
  // No number would mean this process and all of its group.
  if (child > 0) process.kill(child, signal);
}
