import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { startProgramOnOneCore } from "../support/program.ts";

test.runIf(process.platform === "linux")(
  "with one core, the engine has a second thread, which watches timeouts while the first one computes",
  async ({ onTestFinished }) => {
    const { path, remove } = await temporaryDirectory();
    onTestFinished(remove);
    const program = startProgramOnOneCore("serve", "--root", path, "--port", "0");
    onTestFinished(() => void program.child.kill("SIGKILL"));
    await program.listening();
    const threads = `/proc/${program.child.pid}/task`;
    const names = await Promise.all(
      (await readdir(threads)).map((thread) => readFile(`${threads}/${thread}/comm`, "utf8")),
    );
    const workers = names.filter((name) => name.startsWith("tokio-r"));
    assert.ok(workers.length >= 2, names.join(""));
  },
);
