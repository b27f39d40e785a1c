import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

// This file is two folders below the package's own, in the sources and, as a chunk, in the built code.

/** Returns the place of a file by its path in the package. */
export const packageFile = (path: string): URL => new URL(`../../${path}`, import.meta.url);

/** Returns the place of a file that lies beside the code, by its path below `src` in the sources and below `dist` in the built package. */
export const codeFile = (path: string): URL => new URL(`../${path}`, import.meta.url);

/** Returns the place of a program of this package, which node starts, by its path without the extension. */
export const programFile = (path: string): URL => codeFile(`${path}${extname(import.meta.filename)}`);

/** Returns the version of the package, from its package.json. */
export function packageVersion(): string {
  const text = readFileSync(packageFile("package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

/** The pages that come with the package, beside the sources or the code compiled from them. */
export const DOCUMENTATION = fileURLToPath(packageFile("docs/README.md"));
