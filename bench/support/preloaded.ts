import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { NODE } from "../../test/support/node-command.ts";

/** A gateway with a module of a benchmark in its process, which answers every message with figures. */
export interface PreloadedGateway<Figures> {
  readonly port: number;
  /** Returns the figures of the module. */
  figures(): Promise<Figures>;
  stop(): Promise<void>;
}

const PORT = /REST\s+http:\/\/127\.0\.0\.1:(\d+)/;

/** Starts the gateway of a checkout on a backend, given by its options, with a module of the bench folder in it. */
export async function startPreloaded<Figures>(
  checkout: string,
  module: string,
  backend: readonly string[],
): Promise<PreloadedGateway<Figures>> {
  const main = join(checkout, "src", "cli", "main.ts");
  const preloaded = join(import.meta.dirname, "..", module);
  const [command, ...args] = [...NODE, "--import", preloaded, main, "serve", "--port", "0", ...backend];
  const child = spawn(command as string, args, { stdio: ["ignore", "pipe", "inherit", "ipc"] });
  const figures = async (): Promise<Figures> => {
    child.send("figures");
    const [answer] = await once(child, "message");
    return answer as Figures;
  };
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  for await (const line of createInterface({ input: child.stdout as NonNullable<typeof child.stdout> })) {
    const port = PORT.exec(line)?.[1];
    if (port === undefined) continue;
    child.stdout?.resume();
    return { port: Number(port), figures, stop };
  }
  throw new Error(`the gateway of ${checkout} ended before it listened`);
}
