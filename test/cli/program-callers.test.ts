import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { allEnded, processTree } from "../support/processes.ts";

const PROJECT = join(import.meta.dirname, "../..");
const LISTENS = /REST\s+http:\/\/127\.0\.0\.1:\d+/;

/** Writes a file of tests that starts a server and waits for ever. */
function endlessTest(root: string): string {
  const urlOf = (path: string) => JSON.stringify(pathToFileURL(join(PROJECT, path)).href);
  return `import { test } from ${urlOf("node_modules/vitest/dist/index.js")};
import { startProgram } from ${urlOf("test/support/program.ts")};
test("it never ends", async () => {
  await startProgram("serve", "--port", "0", "--root", ${JSON.stringify(root)}).listening();
  console.log("in flight");
  await new Promise(() => setInterval(() => {}, 1000));
});
`;
}

describe("the processes between a caller and the server", {
  skip: !existsSync("/proc/self/stat"),
  concurrent: true,
}, () => {
  let directory: { path: string; remove(): Promise<void> };
  beforeAll(async () => {
    directory = await temporaryDirectory();
  });
  afterAll(async () => {
    for (const id of started) {
      try {
        process.kill(id, "SIGKILL");
      } catch {
        // It has ended.
      }
    }
    await directory.remove();
  });

  const started: number[] = [];

  /** Starts a command in its own process group; resolves when a line of its output reports that it is ready. */
  async function start(line: RegExp, command: string, ...args: string[]) {
    const env = { ...process.env, LANCE_GATEWAY_DRAIN_DELAY: "0s" };
    const child = spawn(command, args, { cwd: PROJECT, env, detached: true });
    const exited = once(child, "exit") as Promise<[code: number | null, signal: string | null]>;
    child.stderr.resume();
    const lines = createInterface({ input: child.stdout });
    await new Promise<void>((resolve, reject) => {
      lines.on("line", (text) => line.test(text) && resolve());
      lines.on("close", () => reject(new Error("it ended early")));
    });
    const tree = await processTree(child.pid as number);
    started.push(...tree);
    return { pid: child.pid as number, tree, exited };
  }

  const npmStart = (root: string) =>
    start(LISTENS, "npm", "start", "--", "--port", "0", "--root", join(directory.path, root));

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    test(`${signal} to npm ends the server, whose exit code comes back`, async () => {
      const { pid, tree, exited } = await npmStart(signal);
      process.kill(pid, signal);
      await allEnded(tree);
      assert.deepEqual(await exited, [0, null]);
    });
  }

  test("Ctrl-C, which all processes of the group get, lets the server drain", async () => {
    const { pid, tree, exited } = await npmStart("group");
    process.kill(-pid, "SIGINT");
    await allEnded(tree);
    assert.deepEqual(await exited, [0, null]);
  });

  test("when npm and its child processes are killed, the server ends", async () => {
    const { tree } = await npmStart("killed");
    for (const id of tree.slice(0, -1)) process.kill(id, "SIGKILL");
    await allEnded(tree);
  });

  test("when npm alone is killed, the server ends", async () => {
    const { pid, tree } = await npmStart("alone");
    process.kill(pid, "SIGKILL");
    await allEnded(tree);
  });

  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    test(`${signal} to a test run ends the servers that its tests have started`, async () => {
      const root = join(directory.path, `run-${signal}`);
      await mkdir(join(root, "src"), { recursive: true });
      await writeFile(join(root, "src", "endless.test.ts"), endlessTest(join(root, "catalog")));
      const run = ["scripts/run.mjs", "node_modules/vitest/vitest.mjs", "run", "--project", "unit"];
      const config = ["--config", join(PROJECT, "vitest.config.ts"), "--root", root];
      const { pid, tree } = await start(/in flight/, process.execPath, ...run, ...config);
      // The processes are the script, the runner, its watchdog, a worker and the server.
      assert.equal(tree.length, 5);
      process.kill(pid, signal);
      await allEnded(tree);
    });
  }
});
