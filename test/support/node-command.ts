import { join } from "node:path";

const FOLLOW = join(import.meta.dirname, "../../scripts/follow-caller.mjs");

/** Node with the arguments for a program that ends when whoever started it has gone, however that ended. */
export const NODE = [process.execPath, "--disable-warning=ExperimentalWarning", "--require", FOLLOW] as const;
