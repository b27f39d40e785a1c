import { globSync } from "node:fs";
import { join } from "node:path";

/** The files of the contract for which stubs are published; other packages bring Google's. */
export function contractFiles(root: string): string[] {
  return globSync("lance/{namespace,gateway}/v1/*.proto", { cwd: join(root, "proto") }).sort();
}
