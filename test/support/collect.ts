import { v8Collector } from "../../src/runtime/v8-collector.ts";

/** Runs the garbage collector at once. */
export const collect: () => void = v8Collector();
