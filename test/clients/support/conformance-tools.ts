import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT, runTool } from "./tools.ts";

const module = join(ROOT, "tools", "conformance");
const bin = join(ROOT, ".cache", "bin");

/** Builds the conformance suites, as `tools/conformance/go.sum` has them, and gives their folder. */
export async function conformanceTools(): Promise<string> {
  mkdirSync(bin, { recursive: true });
  await runTool("go", ["install", "-mod=readonly", "tool"], { cwd: module, env: { GOBIN: bin } });
  return bin;
}

/** Where the Go tool chain keeps the source of one of the suites. */
export async function sourceOf(name: string): Promise<string> {
  return (await runTool("go", ["list", "-m", "-f", "{{.Dir}}", name], { cwd: module })).trim();
}
