import { join } from "node:path";

const FOLLOW = join(import.meta.dirname, "../../scripts/follow-caller.mjs");

/** Node with the arguments for a program that ends when its parent process has ended, in whatever way. */
export const NODE = [process.execPath, "--disable-warning=ExperimentalWarning", "--require", FOLLOW] as const;

/** The program `lance-gateway`: joined once for a run of tests, or from its sources elsewhere. */
export const MAIN = process.env["JOINED_PROGRAM"] ?? join(import.meta.dirname, "../../src/cli/main.ts");
