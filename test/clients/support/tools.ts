import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

/** The project's folder. */
export const ROOT = join(import.meta.dirname, "..", "..", "..");

/** Tools that the clients' sessions need on the machine, and where to get them. */
const TOOLS: Readonly<Record<string, string>> = {
  go: "Go 1.25 or newer (https://go.dev/dl)",
  mvn: "Maven 3.8 or newer with a JDK of version 17 or newer (https://maven.apache.org)",
};

/** How long a program may take, with the downloads of its first run. */
const TIMEOUT_MS = 420_000;

interface ToolOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Runs a program and gives its standard output.
 *
 * @throws Error that says what to install when the program is missing, or that has the program's output.
 */
export async function runTool(
  tool: string,
  args: readonly string[],
  { cwd = ROOT, env = {} }: ToolOptions = {},
): Promise<string> {
  const options = { cwd, env: { ...process.env, ...env }, timeout: TIMEOUT_MS, maxBuffer: 2 ** 26 };
  try {
    return (await promisify(execFile)(tool, [...args], options)).stdout;
  } catch (cause) {
    const { code, stdout = "", stderr = "" } = cause as { code?: unknown; stdout?: string; stderr?: string };
    if (code === "ENOENT")
      throw new Error(`"${tool}" is not installed; this session needs ${TOOLS[tool] ?? tool}`);
    throw Object.assign(new Error(`${tool} failed:\n${stderr}${stdout}`, { cause }), { stdout });
  }
}

/** Runs a client's program; what it printed counts also when it failed, for its result is in it. */
export async function runSession(
  tool: string,
  args: readonly string[],
  options?: ToolOptions,
): Promise<string> {
  return runTool(tool, args, options).catch((error: Error & { stdout?: string }) => {
    if (!error.stdout?.includes('"passed"')) throw error;
    process.stderr.write(`${error.message}\n`);
    return error.stdout;
  });
}
