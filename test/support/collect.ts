import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");

/** Collects at once what nobody refers to. */
export const collect = runInNewContext("gc") as () => void;
