import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OLDEST_NODE } from "../../bin/node-version.js";
import { npmTool } from "../../scripts/npm-tool.ts";
import { ROOT } from "./support/tools.ts";

test("the program of the package says in one line on Node 16 that Node is too old", () => {
  const old = npmTool("old-node", "node/bin/node");
  const program = join(ROOT, "bin", "lance-gateway.js");
  const { status, stdout, stderr } = spawnSync(old, [program, "serve"], { encoding: "utf8" });
  expect(stdout).toBe("");
  expect(stderr).toMatch(
    new RegExp(`^lance-gateway: Node ${OLDEST_NODE} or newer is needed; this is 16\\.\\d+\\.\\d+\\n$`),
  );
  expect(status).toBe(1);
});
