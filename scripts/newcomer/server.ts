import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

/** Variables of this checkout and of npm, which a newcomer does not have. */
const OURS = /^(npm_lifecycle|npm_package|LANCE_GATEWAY)_|^NODE_COMPILE_CACHE$/;

/** Returns the environment of a newcomer. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !OURS.test(name)));
}

/** A gateway that `npm start` runs. */
export interface NpmServer extends AsyncDisposable {
  /** Everything that it has written so far. */
  output(): string;
}

/** Starts the gateway of a clone as the README says, and waits until it serves its console. */
export async function startByNpm(clone: string, address: string): Promise<NpmServer> {
  const port = new URL(`http://${address}`).port;
  const child = spawn("npm", ["start", "--", "--port", port], {
    ...{ cwd: clone, env: cleanEnvironment(), stdio: ["ignore", "pipe", "pipe"] },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const hasConsole = async () => {
    const answer = await fetch(`http://${address}/console/`).catch(() => undefined);
    return answer?.ok === true && answer.headers.get("content-type")?.startsWith("text/html") === true;
  };
  const server = await runServer(child, hasConsole, "SIGINT").catch((error: unknown) => {
    process.stderr.write(output);
    throw error;
  });
  return { ...server, output: () => output };
}

/**
 * Serves a directory from a clone on a terminal, by the command of the tutorials, until the gateway is ready; then types Ctrl-C and
 * returns everything that the terminal showed, with the time to the end in milliseconds.
 */
export async function serveOnTerminal(clone: string, root: string, address: string) {
  const { port } = new URL(`http://${address}`);
  const command = `npm run --silent lg -- serve --root ${root} --port ${port}`;
  const child = spawn("script", ["--quiet", "--return", "--flush", "--command", command, "/dev/null"], {
    ...{ cwd: clone, env: cleanEnvironment(), stdio: ["pipe", "pipe", "inherit"] },
  });
  const ended = once(child, "exit");
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const isReady = async () => (await fetch(`http://${address}/readyz`).catch(() => undefined))?.ok === true;
  await runServer(child, isReady);
  const begun = performance.now();
  child.stdin.write("\u0003");
  await ended;
  return { output, endMs: performance.now() - begun };
}

/** Waits until a program serves; a signal ends it with the result, or with this process. @throws Error if it ends first */
export async function runServer(
  child: ChildProcess,
  isReady: () => Promise<boolean>,
  signal: NodeJS.Signals = "SIGTERM",
): Promise<AsyncDisposable> {
  const ended = once(child, "exit");
  process.on("exit", () => child.kill());
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with code ${child.exitCode}`);
    await sleep(100);
  }
  return {
    async [Symbol.asyncDispose]() {
      child.kill(signal);
      await ended;
    },
  };
}
