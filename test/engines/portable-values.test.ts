import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startGateway } from "../clients/support/gateway.ts";
import { runTool } from "../clients/support/tools.ts";
import { rayInterpreter } from "./ray-head.ts";

it("computes the values of portable expressions as the engine of the driver does", async () => {
  const python = await rayInterpreter();
  const root = mkdtempSync(join(tmpdir(), "lance-gateway-values-"));
  const gateway = await startGateway("--root", root, "--port", "0");
  try {
    const output = await runTool(python, [join(import.meta.dirname, "ray", "values.py"), gateway.uri]);
    const { compared, ...others } = JSON.parse(output.trim().split("\n").at(-1) ?? "");
    expect(compared).toBeGreaterThan(100);
    process.stderr.write(`${JSON.stringify({ compared, ...others })}\n`);
  } finally {
    await gateway.close();
    rmSync(root, { recursive: true, force: true });
  }
}, 300_000);
