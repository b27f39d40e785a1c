import type { SharedCounter } from "../../src/runtime/threads/sharing.ts";

/** Creates a counter of one thread that begins with 0. */
export function createCounter(): SharedCounter {
  let value = 0;
  return {
    get value() {
      return value;
    },
    raise(to) {
      value = Math.max(value, to);
    },
    increment: () => value++,
  };
}
