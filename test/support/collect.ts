import { v8Collector } from "../../src/runtime/internals/v8-flags.ts";

/** Runs the garbage collector at once. */
export const collect: () => void = v8Collector();
