import { readFileSync } from "node:fs";

/** The version of the package, from its package.json. */
export function packageVersion(): string {
  // The sources and the built package both lie two folders below it.
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
