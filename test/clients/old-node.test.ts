import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { OLDEST_NODE } from "../../bin/node-version.js";
import { npmTool } from "../../scripts/npm-tool.ts";
import { ROOT } from "./support/tools.ts";

test("the program of the package says in one line on Node 16 that Node is too old", () => {
  const old = npmTool("old-node", "node/bin/node");
  const folder = mkdtempSync(join(tmpdir(), "lance-gateway-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ["bin", "package.json"])
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  const program = join(folder, "bin", "lance-gateway.js");
  const { status, stdout, stderr } = spawnSync(old, [program, "serve"], { encoding: "utf8" });
  expect(stdout).toBe("");
  expect(stderr).toMatch(
    new RegExp(`^lance-gateway: Node ${OLDEST_NODE} or newer is needed; this is 16\\.\\d+\\.\\d+\\n$`),
  );
  expect(status).toBe(1);
});
