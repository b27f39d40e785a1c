import assert from "node:assert/strict";
import { test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { runShell } from "../support/shells.ts";

test("fish completes commands, options and saved connections, and zsh parses its script", async (t) => {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const asked = ["tags cr", "import --mode app", "ls --context n"];
  const script = [
    "lance-gateway completion fish | source",
    `lance-gateway context add nearby --root ${path} >/dev/null`,
    ...asked.map((words) => `complete -C "lance-gateway ${words}"`),
    "lance-gateway completion zsh | zsh -n; and echo parsed",
  ];
  const lines = await runShell("fish", script.join("\n"), { XDG_CONFIG_HOME: path });
  assert.deepEqual(
    lines.map((line) => line.split("\t")[0]),
    ["create", "append", "nearby", "parsed"],
  );
});
