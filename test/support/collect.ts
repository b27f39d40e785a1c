import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");

/** Runs the garbage collector at once. */
export const collect = runInNewContext("gc") as () => void;
