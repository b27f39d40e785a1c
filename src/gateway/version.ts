import { readFileSync } from "node:fs";
import { packageFile } from "../runtime/package-files.ts";

/** Returns the version of the package, from its package.json. */
export function packageVersion(): string {
  const text = readFileSync(packageFile("package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
