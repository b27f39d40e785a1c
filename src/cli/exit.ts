import { filesAnswer } from "../runtime/files-in-time.ts";
import { runsUnbrokenWork } from "../runtime/unbroken-work.ts";

/** Exit code that a shell and containers give for SIGKILL. */
const KILLED = 137;

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
  exitInPlace(KILLED);
}

/** Replaces the process by a program that ends at once, and so ends all threads without their doing. Windows cannot do so. */
function exitInPlace(code: number): void {
  const environment = { ...process.env, NODE_OPTIONS: "" };
  process.execve?.(process.execPath, [process.execPath, "--eval", `process.exit(${code})`], environment);
}
