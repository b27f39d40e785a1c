import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { OLDEST_NODE } from "../../bin/node-version.js";
import { npmTool } from "../../scripts/npm-tool.ts";
import { ROOT } from "./support/tools.ts";

const LINE = new RegExp(
  `^lance-gateway: Node ${OLDEST_NODE} or newer is needed; this is 16\\.\\d+\\.\\d+ \\(.*install lance-gateway with the newer one\\)\\n$`,
);

/** Runs a program of the package on Node 16. */
function runOnOldNode(program: string, ...args: readonly string[]) {
  const old = npmTool("old-node", "node/bin/node");
  const folder = mkdtempSync(join(tmpdir(), "lance-gateway-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ["bin", "package.json"])
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  return spawnSync(old, [join(folder, program), ...args], { encoding: "utf8" });
}

for (const [what, program, ...args] of [
  ["the program of the package", "bin/lance-gateway.js", "serve"],
  ["the installation of the package", "bin/check-node.js"],
] as const) {
  test(`${what} says in one line on Node 16 that Node is too old`, () => {
    const { status, stdout, stderr } = runOnOldNode(program, ...args);
    expect(stdout).toBe("");
    expect(stderr).toMatch(LINE);
    expect(status).toBe(1);
  });
}

test("the installation of a clone goes on with Node 16", () => {
  const old = npmTool("old-node", "node/bin/node");
  const { status, stderr } = spawnSync(old, [join(ROOT, "bin", "check-node.js")], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
});
