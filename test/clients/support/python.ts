import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const folder = join(import.meta.dirname, "..", "python");
const environment = join(import.meta.dirname, "..", "..", "..", ".cache", "python");
const run = promisify(execFile);

/**
 * The interpreter of an environment with the pinned clients, which is made the first time and again whenever
 * the requirements change.
 */
function interpreter(): string {
  const requirements = join(folder, "requirements.txt");
  const python = join(environment, "bin", "python");
  const stamp = join(environment, "requirements.txt");
  const wanted = readFileSync(requirements, "utf8");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return python;
  mkdirSync(environment, { recursive: true });
  execFileSync("python3", ["-m", "venv", "--clear", environment], { stdio: "inherit" });
  execFileSync(python, ["-m", "pip", "install", "--quiet", "-r", requirements], { stdio: "inherit" });
  writeFileSync(stamp, wanted);
  return python;
}

/** Runs one of the scripts beside the tests; it fails the test when the script fails, with its output. */
export async function runPython(script: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run(interpreter(), [join(folder, script), ...args], { timeout: 120_000 });
  return stdout;
}

/** Runs a piece of Python source, as {@link runPython} runs a script. */
export async function runPythonSource(source: string): Promise<string> {
  const { stdout } = await run(interpreter(), ["-c", source], { timeout: 120_000 });
  return stdout;
}
