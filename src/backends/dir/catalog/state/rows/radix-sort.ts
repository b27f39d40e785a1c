import type { Steps } from "../../../../../runtime/pace.ts";

/** Keys of numbered items: digits below `radix`, from the most significant one on. */
export interface RadixKeys {
  readonly radix: number;
  /** Returns the digit at a place; -1 if the key ends before it. */
  digit(item: number, depth: number): number;
  /** Compares two items by their keys, and items with equal keys among each other. */
  compare(a: number, b: number): number;
}

/** Number of items up to which they are compared directly, and number of equal digits after which they are. */
const FEW = 24;
const MAX_DEPTH = 1000;

/** The sort pauses at every multiple of this number. */
const ITEMS_PER_STEP = 2048;
const isStep = (item: number) => item % ITEMS_PER_STEP === 0;

/**
 * Sorts items in place by their keys, in steps; a key is before all keys that begin with it.
 *
 * It reads each digit once, whereas comparisons read equal beginnings repeatedly: a million unordered names take less
 * than half of the time.
 */
export function* radixSort(items: Int32Array, keys: RadixKeys): Steps<void> {
  const buffer = new Int32Array(items.length);
  const digits = new Int32Array(items.length);

  function* sort(start: number, end: number, depth: number): Steps<void> {
    const ends = new Int32Array(keys.radix + 1);
    for (let i = start; i < end; i++) {
      const digit = keys.digit(items[i] as number, depth) + 1;
      digits[i] = digit;
      (ends[digit] as number)++;
      if (isStep(i)) yield;
    }
    for (let digit = 0, at = start; digit < ends.length; digit++) {
      const count = ends[digit] as number;
      ends[digit] = at;
      at += count;
    }
    for (let i = start; i < end; i++) {
      const digit = digits[i] as number;
      buffer[ends[digit] as number] = items[i] as number;
      (ends[digit] as number)++;
      if (isStep(i)) yield;
    }
    items.set(buffer.subarray(start, end), start);
    for (let digit = 0, from = start; digit < ends.length; digit++) {
      const to = ends[digit] as number;
      // Keys that end here are equal, and only a comparison can order them.
      if (to - from <= FEW || depth >= MAX_DEPTH || digit === 0) items.subarray(from, to).sort(keys.compare);
      else yield* sort(from, to, depth + 1);
      from = to;
    }
    yield;
  }
  yield* sort(0, items.length, 0);
}
