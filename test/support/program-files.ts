import { dirname, extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { MAIN } from "./node-command.ts";

export * from "../../src/runtime/package-files.ts";

/** Returns the place of a program in the joined code, because each start from the sources loads and strips hundreds of modules. */
export const programFile = (path: string): URL =>
  pathToFileURL(join(dirname(dirname(MAIN)), `${path}${extname(MAIN)}`));
