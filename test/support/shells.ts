import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { MAIN, NODE } from "./node-command.ts";

const run = promisify(execFile);

/** A line of a shell that calls the program by its name. */
const FUNCTIONS = {
  bash: `lance-gateway() { ${quoted()} "$@"; }`,
  fish: `function lance-gateway; ${quoted()} $argv; end`,
} as const;

function quoted(): string {
  return [...NODE, MAIN].map((word) => `'${word}'`).join(" ");
}

/** Runs a script of a shell, in which `lance-gateway` is the program, and returns its lines. */
export async function runShell(
  shell: keyof typeof FUNCTIONS,
  script: string,
  environment: Readonly<Record<string, string>>,
): Promise<string[]> {
  const args = shell === "bash" ? ["--norc", "-c"] : ["--no-config", "-c"];
  const { stdout } = await run(shell, [...args, `${FUNCTIONS[shell]}\n${script}`], {
    env: { ...process.env, ...environment },
  });
  return stdout.trimEnd().split("\n");
}
