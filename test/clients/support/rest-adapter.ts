import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pythonInterpreter } from "../../../scripts/python-environment.ts";
import { temporaryDirectory } from "../../support/directory.ts";

const program = join(import.meta.dirname, "..", "..", "..", "bench", "data", "peer.py");

/** The Rust REST adapter of the pylance wheel, over a directory of its own. */
export interface RestAdapter {
  readonly uri: string;
  close(): Promise<void>;
}

/** Starts an adapter on a free port over an empty directory. */
export async function startRestAdapter(): Promise<RestAdapter> {
  const { path: root, remove } = await temporaryDirectory();
  const child = spawn(pythonInterpreter(), [program, "serve", root], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    return {
      uri: `http://127.0.0.1:${line}`,
      async close() {
        child.kill("SIGKILL");
        await once(child, "exit");
        await remove();
      },
    };
  }
  throw new Error("the adapter ended before it listened");
}
