import { SECONDS_BOUNDS } from "../../namespace/figures/seconds-bounds.ts";

/** Creates the counts of a histogram of seconds, all zero; the last one is for values above all bounds. */
export function createCounts(): number[] {
  return [...SECONDS_BOUNDS.map(() => 0), 0];
}

/** Counts a value, and returns its bucket. Most values are in the first buckets. */
export function countIn(counts: number[], seconds: number): number {
  let bucket = 0;
  while (bucket < SECONDS_BOUNDS.length && seconds > (SECONDS_BOUNDS[bucket] as number)) bucket += 1;
  counts[bucket] = (counts[bucket] as number) + 1;
  return bucket;
}
