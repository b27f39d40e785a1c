import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { AS_FIRST } from "./first-process.ts";
import { MAIN, NODE } from "./node-command.ts";
import { until } from "./until.ts";

/** The outcome of a run of the program. */
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
  /** Resolves to the port when the program prints where it listens; rejects when it ends first. */
  listening(): Promise<number>;
}

/** Starts `lance-gateway` with arguments, in an environment without its variables. */
export function startProgram(...args: readonly string[]): Program {
  return startProgramAs(undefined, ...args);
}

/** Starts the program as another user of the system, which only the superuser may do. */
export function startProgramAs(user: number | undefined, ...args: readonly string[]): Program {
  return spawnProgram([], user !== undefined ? { uid: user, gid: user } : {}, args);
}

/** Starts the program with a clock that is wrong by the given number of milliseconds. */
export function startProgramAt(shiftMs: number, ...args: readonly string[]): Program {
  const source = `const now = Date.now; Date.now = () => now() + ${shiftMs};`;
  return spawnProgram(["--import", `data:text/javascript,${encodeURIComponent(source)}`], {}, args);
}

/** Starts the program with further variables in the environment. */
export function startProgramIn(
  environment: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Program {
  return spawnProgram([], {}, args, environment);
}

/** Starts the program with a maximum number of file descriptors. */
export function startProgramWithin(descriptors: number, ...args: readonly string[]): Program {
  return spawnProgram([], {}, args, {}, ["/bin/sh", "-c", `ulimit -n ${descriptors}; exec "$0" "$@"`]);
}

/** Starts the program with a single core. */
export function startProgramOnOneCore(...args: readonly string[]): Program {
  return spawnProgram([], {}, args, {}, ["taskset", "--cpu-list", "0"]);
}

/** Starts the program as the first process of a namespace, like that of a container. Its starter is the child. */
export function startProgramAsFirst(...args: readonly string[]): Program {
  return spawnProgram([], {}, args, {}, AS_FIRST);
}

/** Starts the program. @param shell a command that starts Node, whose command line is its arguments */
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
          const port = /REST\s+https?:\/\/127\.0\.0\.1:(\d+)/.exec(seen)?.[1];
          if (port !== undefined) resolve(Number(port));
        });
        void ended.then(({ stderr }) => reject(new Error(`it ended before it listened: ${stderr}`)));
      });
    },
  };
}

/** Resolves when a port refuses connections. */
export function refusing(port: number): Promise<void> {
  return until(async () => {
    const socket = connect({ host: "127.0.0.1", port });
    const accepted = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    return !accepted;
  });
}

/** Returns what a program has written to standard error, except for lines of the log up to the level info. */
export function troublesIn(stderr: string): string[] {
  const isInfo = (line: string) => line.startsWith("{") && JSON.parse(line).level <= 30;
  return stderr.split("\n").filter((line) => line !== "" && !isInfo(line));
}
