import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

/** Variables of this checkout and of npm, which a newcomer does not have. */
const OURS = /^(npm_lifecycle|npm_package|LANCE_GATEWAY)_|^NODE_COMPILE_CACHE$/;

/** Starts the gateway of a clone as the README says, and waits until it serves its console. */
export async function startByNpm(clone: string, address: string): Promise<AsyncDisposable> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OURS.test(name)));
  const port = new URL(`http://${address}`).port;
  const child = spawn("npm", ["start", "--", "--port", port], {
    ...{ cwd: clone, env, stdio: ["ignore", "ignore", "inherit"] },
  });
  const hasConsole = async () => {
    const answer = await fetch(`http://${address}/console/`).catch(() => undefined);
    return answer?.ok === true && answer.headers.get("content-type")?.startsWith("text/html") === true;
  };
  return runServer(child, hasConsole);
}

/** Waits until a program serves; it ends with the result, or with this process. @throws Error if it ends first */
export async function runServer(
  child: ChildProcess,
  isReady: () => Promise<boolean>,
): Promise<AsyncDisposable> {
  const ended = once(child, "exit");
  process.on("exit", () => child.kill());
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with code ${child.exitCode}`);
    await sleep(100);
  }
  return {
    async [Symbol.asyncDispose]() {
      child.kill();
      await ended;
    },
  };
}
