import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { pythonInterpreter } from "../../../scripts/python-environment.ts";
import { recordPrinted } from "./session.ts";
import { runSession } from "./tools.ts";

const folder = join(import.meta.dirname, "..", "python");
const run = promisify(execFile);

/** Time limit of a script, in milliseconds; the tests have their own. */
const TIME_LIMIT_MS = 15 * 60_000;

/** Runs one of the scripts beside the tests; it fails the test when the script fails, with its output. */
export async function runPython(script: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run(pythonInterpreter(), [join(folder, script), ...args], {
    timeout: TIME_LIMIT_MS,
  });
  return stdout;
}

/** Runs a script that is a session, and keeps its result. */
export async function runPythonSession(script: string, ...args: readonly string[]): Promise<void> {
  recordPrinted(await runSession(pythonInterpreter(), [join(folder, script), ...args]));
}
