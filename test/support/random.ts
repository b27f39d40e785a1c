/** A source of choices that repeats them for an equal seed. */
export interface Random {
  /** Returns an integer from 0 to `bound`, exclusive. */
  below(bound: number): number;
  /** Returns an element of a list that is not empty. */
  pick<T>(from: readonly T[]): T;
}

/** Creates a source of choices (the generator is Mulberry32). */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const below = (bound: number) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
  return {
    below,
    pick: (from) => {
      if (from.length === 0) throw new Error("there is nothing to pick from");
      return from[below(from.length)] as (typeof from)[number];
    },
  };
}
