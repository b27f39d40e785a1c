import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, type TestContext, test } from "vitest";
import { temporaryDirectory } from "../../test/support/directory.ts";
import { AS_FIRST, mayUnshare, signalFirst } from "../../test/support/first-process.ts";

/** A program whose end waits for a file, as for one of a table, whose file system does not answer. */
const PROGRAM = `
  import { readFile } from "node:fs";
  import { pino } from "pino";
  import { handleSignals } from ${JSON.stringify(join(import.meta.dirname, "exit.ts"))};
  const end = () => new Promise((resolve) => readFile(process.argv[1], resolve));
  handleSignals({ end, reload() {}, log: pino(process.stdout) });
  setInterval(() => {}, 1_000);
  console.log("running");
`;

test("a second signal ends the program although a file does not answer", async (t) => {
  assert.deepEqual(await endBySignals(t, []), [null, "SIGKILL"]);
});

test.skipIf(!mayUnshare())("a second signal also ends the first process of a container", async (t) => {
  assert.deepEqual(await endBySignals(t, AS_FIRST), [137, null]);
});

test("SIGHUP during the start has the configuration read once the program handles signals", () => {
  const program = `
    import { setTimeout } from "node:timers/promises";
    import { pino } from "pino";
    import { handleEarlySignals, handleSignals } from ${JSON.stringify(join(import.meta.dirname, "exit.ts"))};
    handleEarlySignals();
    process.kill(process.pid, "SIGHUP");
    process.kill(process.pid, "SIGHUP");
    await setTimeout(100);
    console.log("started");
    handleSignals({ async end() {}, reload: () => console.log("reload"), log: pino(process.stderr) });
    process.kill(process.pid, "SIGHUP");
    await setTimeout(100);
  `;
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  assert.deepEqual(output.trim().split("\n"), ["started", "reload", "reload"]);
});

/** Sends signals until the program ends, and returns its exit code and its signal. @param starter a command that starts it */
async function endBySignals(t: TestContext, starter: readonly string[]) {
  const directory = await temporaryDirectory();
  t.onTestFinished(directory.remove);
  const silent = join(directory.path, "silent");
  // Without a writer, already the attempt to open it waits.
  execFileSync("mkfifo", [silent]);
  const own = [process.execPath, "--input-type=module", "-e", PROGRAM, silent];
  const [command = "", ...args] = [...starter, ...own];
  const program = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  t.onTestFinished(() => void program.kill("SIGKILL"));
  const ended = once(program, "exit");
  let text = "";
  program.stdout.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
  });
  await expect.poll(() => text).toContain("running");
  const terminate = () => {
    if (starter.length > 0) signalFirst(program.pid, "SIGTERM");
    else program.kill("SIGTERM");
  };
  terminate();
  await expect.poll(() => text).toContain("stopping");
  const again = setInterval(() => program.exitCode ?? program.signalCode ?? terminate(), 100);
  t.onTestFinished(() => clearInterval(again));
  return ended;
}
