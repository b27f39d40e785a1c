import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { NODE } from "./node-command.ts";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");

/** How a run of the program ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running `lance-gateway`. */
export interface Program {
  readonly child: ChildProcess;
  readonly ended: Promise<Ending>;
  /** Resolves to the port when the program says where it listens; rejects when it ends before that. */
  listening(): Promise<number>;
}

/** Starts `lance-gateway` with arguments, in an environment without its variables. */
export function startProgram(...args: readonly string[]): Program {
  return startProgramAs(undefined, ...args);
}

/** The same as another user of the system, which only the superuser may do. */
export function startProgramAs(user: number | undefined, ...args: readonly string[]): Program {
  return spawnProgram([], user !== undefined ? { uid: user, gid: user } : {}, args);
}

/** The same with a clock that is wrong by so many milliseconds. */
export function startProgramAt(shiftMs: number, ...args: readonly string[]): Program {
  const source = `const now = Date.now; Date.now = () => now() + ${shiftMs};`;
  return spawnProgram(["--import", `data:text/javascript,${encodeURIComponent(source)}`], {}, args);
}

/** The same with further variables in the environment. */
export function startProgramIn(
  environment: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Program {
  return spawnProgram([], {}, args, environment);
}

/** The same with so many file descriptors at most. */
export function startProgramWithin(descriptors: number, ...args: readonly string[]): Program {
  return spawnProgram([], {}, args, {}, ["/bin/sh", "-c", `ulimit -n ${descriptors}; exec "$0" "$@"`]);
}

/** @param shell what starts Node, whose command line it gets as its arguments */
function spawnProgram(
  flags: readonly string[],
  identity: { readonly uid?: number; readonly gid?: number },
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  shell: readonly string[] = [],
): Program {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !name.startsWith("LANCE_GATEWAY_") && name !== "NODE_OPTIONS",
    ),
  );
  const node = [...NODE, ...flags, MAIN];
  const [command = "", ...rest] = [...shell, ...node, ...args];
  const child = spawn(command, rest, {
    env: { ...env, LANCE_GATEWAY_DRAIN_DELAY: "0s", ...environment },
    ...identity,
  });
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  const ended = output.then(([stdout, stderr, [code, signal]]) => ({ code, signal, stdout, stderr }));
  return {
    child,
    ended,
    listening() {
      let seen = "";
      return new Promise((resolve, reject) => {
        child.stdout.on("data", (piece) => {
          seen += piece;
          const port = /REST\s+http:\/\/127\.0\.0\.1:(\d+)/.exec(seen)?.[1];
          if (port !== undefined) resolve(Number(port));
        });
        void ended.then(({ stderr }) => reject(new Error(`it ended before it listened: ${stderr}`)));
      });
    },
  };
}

/** Resolves when a port takes no more connections. */
export async function refusing(port: number): Promise<void> {
  for (;;) {
    const socket = connect({ host: "127.0.0.1", port });
    const accepted = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    if (!accepted) return;
  }
}
