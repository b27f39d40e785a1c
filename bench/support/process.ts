import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { allocatorVariables } from "../../bin/allocator.js";
import { NODE } from "../../test/support/node-command.ts";

/** A server under load, in its own process. */
export interface ServerProcess {
  readonly port: number;
  readonly pid: number;
  /** Whether the process is still running. */
  alive(): boolean;
  stop(): Promise<void>;
}

/** The line in which a gateway says where it serves REST. */
const REST_LINE = /REST\s+http:\/\/127\.0\.0\.1:(\d+)/;

/** Starts a program of the bench folder, or at an absolute path; its first line of output is its port. */
export function startServer(program: string, ...args: readonly string[]): Promise<ServerProcess> {
  return startProcess([...NODE, resolve(import.meta.dirname, "..", program), ...args], /^(\d+)$/);
}

/** Starts the gateway as a user would, on a free port. */
export function startGateway(...args: readonly string[]): Promise<ServerProcess> {
  return startGatewayOf(join(import.meta.dirname, "..", ".."), ...args);
}

/** Starts the gateway of a checkout, for example of an earlier commit, with the allocator that users get. */
export function startGatewayOf(checkout: string, ...args: readonly string[]): Promise<ServerProcess> {
  const main = join(checkout, "src", "cli", "main.ts");
  const env = { ...process.env, ...allocatorVariables(["serve", ...args]) };
  return startProcess([...NODE, main, "serve", "--port", "0", ...args], REST_LINE, env);
}

/** Starts the gateway as users of the package do, from the files that `npm run build` makes. */
export function startPackage(...args: readonly string[]): Promise<ServerProcess> {
  const program = join(import.meta.dirname, "..", "..", "bin", "lance-gateway.js");
  // A compile cache, as benchmarks have it, would stay in memory.
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  return startProcess([process.execPath, program, "serve", "--port", "0", ...args], REST_LINE, env);
}

/**
 * Starts a server.
 *
 * @param portLine a pattern for the line that reports the port, as its first group
 * @param env Default: the variables of this process.
 */
export async function startProcess(
  [command = "", ...args]: readonly string[],
  portLine: RegExp,
  env = process.env,
): Promise<ServerProcess> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"], env });
  const port = await findPort(child, portLine, args);
  const alive = () => child.exitCode === null && child.signalCode === null;
  return { port, pid: child.pid ?? 0, alive, stop: () => stop(child) };
}

async function findPort(child: ChildProcess, portLine: RegExp, args: readonly string[]): Promise<number> {
  const lines = createInterface({ input: child.stdout as NonNullable<ChildProcess["stdout"]> });
  for await (const line of lines) {
    const port = portLine.exec(line)?.[1];
    if (port !== undefined) return Number(port);
  }
  throw new Error(`${args.join(" ")} ended before it listened`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
