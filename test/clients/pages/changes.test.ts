import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { ROOT, runTool } from "../support/tools.ts";

const CHANGES = globSync("docs/changes/*.diff", { cwd: ROOT }).sort();

/** Copies the files of the repository, without what is generated, and links what is installed. */
function copyOfTree(): string {
  const copy = mkdtempSync(join(tmpdir(), "lance-gateway-changes-"));
  const list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  for (const file of execFileSync("git", list, { cwd: ROOT, encoding: "utf8" }).split("\0").filter(Boolean))
    cpSync(join(ROOT, file), join(copy, file));
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** Returns the tests that a change adds. */
function testsOf(change: string): string[] {
  const text = readFileSync(join(ROOT, change), "utf8");
  return [...text.matchAll(/^--- \/dev\/null\n\+\+\+ b\/(.*\.test\.ts)$/gm)].map(([, path = ""]) => path);
}

test("the changes that CONTRIBUTING.md shows apply, type-check, and pass the tests that they add", async ({
  onTestFinished,
}) => {
  const cwd = copyOfTree();
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  const env = { PATH: `${join(ROOT, "node_modules", ".bin")}:${process.env["PATH"]}` };
  const options = { cwd, env };
  // A line of context on each side is enough, so that a change nearby does not matter.
  for (const change of CHANGES) await runTool("git", ["apply", "-C1", join(ROOT, change)], options);
  await runTool("buf", ["generate"], options);
  await runTool("tsc", ["--noEmit"], options);
  const tests = CHANGES.flatMap((change) => {
    const own = testsOf(change);
    assert.ok(own.length > 0, `${change} adds no test`);
    return own;
  });
  const printed = await runTool("vitest", ["run", ...tests], options);
  assert.match(printed, new RegExp(`^${CHANGES.length} passed, 0 failed`, "m"));
});
