import { filesAnswer } from "../runtime/files-in-time.ts";

/** Ends the process; by force if its end would wait for a file that does not answer. */
export async function exit(code: number): Promise<void> {
  if (!(await filesAnswer())) exitByForce();
  process.exit(code);
}

/** Ends the process, which would otherwise wait for the work of all its threads. */
export function exitByForce(): void {
  process.kill(process.pid, "SIGKILL");
}
