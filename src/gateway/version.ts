import { readFileSync } from "node:fs";

/** Returns the version of the package, from its package.json. */
export function packageVersion(): string {
  // package.json is two folders above this file, in the sources and in the built package.
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
