import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { mayUnshare, signalFirst } from "../support/first-process.ts";
import { startProgramAsFirst } from "../support/program.ts";

/** Keeps the gateway from its start. */
const PLUGIN = `
  import { writeSync } from "node:fs";
  setInterval(() => {}, 1_000);
  writeSync(2, "starting\\n");
  await new Promise(() => {});
`;

test.skipIf(!mayUnshare())("a signal during the start ends the first process of a container", async (t) => {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const plugin = join(path, "plugin.mjs");
  await writeFile(plugin, PLUGIN);
  const { child, ended } = startProgramAsFirst(
    "serve",
    "--root",
    join(path, "root"),
    "--port",
    "0",
    "--plugin",
    plugin,
  );
  t.onTestFinished(() => void child.kill("SIGKILL"));
  let stderr = "";
  child.stderr?.on("data", (piece) => {
    stderr += piece;
  });
  await expect.poll(() => stderr).toContain("starting");
  signalFirst(child.pid, "SIGTERM");
  const { code, signal } = await ended;
  assert.deepEqual([code, signal], [143, null]);
});
