import { ITEMS_PER_STEP } from "../../src/runtime/pace.ts";

/** A list whose encoding a test watches. */
export interface SlowList {
  readonly list: string[];
  /** Resolves when the encoding has begun. */
  readonly begun: Promise<void>;
  /** Number of steps of the encoding. */
  readonly steps: number;
}

/** Time that a step takes, in milliseconds: a pause is due after each. */
const STEP_MS = 11;

/** Creates a long list that is encoded slowly until something has ended, and fast from then on. */
export function createSlowList(hasEnded: () => boolean): SlowList {
  const begun = Promise.withResolvers<void>();
  let steps = 0;
  function step(): void {
    steps += 1;
    begun.resolve();
    for (const end = performance.now() + STEP_MS; !hasEnded() && performance.now() < end; );
  }
  const list = Array.from({ length: 400 * ITEMS_PER_STEP }, String);
  Object.assign(list, {
    slice(from: number, to: number): string[] {
      step();
      return Array.prototype.slice.call(list, from, to);
    },
    *entries(): Generator<[number, string]> {
      for (let at = 0; at < list.length; at++) {
        if (at % ITEMS_PER_STEP === 0) step();
        yield [at, list[at] as string];
      }
    },
  });
  return {
    list,
    begun: begun.promise,
    get steps() {
      return steps;
    },
  };
}
