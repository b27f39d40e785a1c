import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A server under load, in a process of its own. */
export interface ServerProcess {
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts a program of the bench folder; the first line that it prints is its port. */
export async function startServer(program: string, ...args: readonly string[]): Promise<ServerProcess> {
  const path = join(import.meta.dirname, "..", program);
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", path, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return { port: await firstLineAsPort(child, program), stop: () => stop(child) };
}

async function firstLineAsPort(child: ChildProcess, program: string): Promise<number> {
  const lines = createInterface({ input: child.stdout as NonNullable<ChildProcess["stdout"]> });
  for await (const line of lines) return Number(line);
  throw new Error(`${program} ended before it listened`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
