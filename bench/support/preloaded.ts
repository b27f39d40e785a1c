import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { NODE } from "../../test/support/node-command.ts";
import type { LoopFigures } from "./watch.ts";

/** A gateway whose event loop is watched. */
export interface WatchedGateway {
  readonly port: number;
  /** Returns the figures since the last call of this function. */
  figures(): Promise<LoopFigures>;
  stop(): Promise<void>;
}

const PORT = /REST\s+http:\/\/127\.0\.0\.1:(\d+)/;

/** Starts the gateway of a checkout on a backend, given by its options, with the watch in it. */
export async function startWatched(checkout: string, backend: readonly string[]): Promise<WatchedGateway> {
  const main = join(checkout, "src", "cli", "main.ts");
  const watch = join(import.meta.dirname, "watch.ts");
  const [command, ...args] = [...NODE, "--import", watch, main, "serve", "--port", "0", ...backend];
  const child = spawn(command as string, args, { stdio: ["ignore", "pipe", "inherit", "ipc"] });
  const figures = async (): Promise<LoopFigures> => {
    child.send("figures");
    const [answer] = await once(child, "message");
    return answer as LoopFigures;
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
