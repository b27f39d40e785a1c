import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./tools.ts";

/** The version of an installed package. */
export function installedVersion(name: string): string {
  const text = readFileSync(join(ROOT, "node_modules", name, "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
