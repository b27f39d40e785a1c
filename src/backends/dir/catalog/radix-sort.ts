/** Keys of numbered things: for each one digits below `radix`, from the most significant one on. */
export interface RadixKeys {
  readonly radix: number;
  /** The digit at a place; -1 when the key ends before it. */
  digit(item: number, depth: number): number;
  /** Orders items as their keys do, and those with one key among each other. */
  compare(a: number, b: number): number;
}

/** So few items are sorted by comparing them, and so are those that are alike for so many digits. */
const FEW = 24;
const MAX_DEPTH = 1000;

/**
 * Sorts items in place by their keys, a shorter one before those that begin with it.
 *
 * It looks at each digit once, where sorting by comparison reads beginnings that are alike again and again: for a
 * million names in no order it takes less than half of the time.
 */
export function radixSort(items: Int32Array, keys: RadixKeys): void {
  const buffer = new Int32Array(items.length);
  const digits = new Int32Array(items.length);

  function sort(start: number, end: number, depth: number): void {
    if (end - start <= FEW || depth > MAX_DEPTH) {
      items.subarray(start, end).sort(keys.compare);
      return;
    }
    const ends = new Int32Array(keys.radix + 1);
    for (let i = start; i < end; i++) {
      const digit = keys.digit(items[i] as number, depth) + 1;
      digits[i] = digit;
      (ends[digit] as number)++;
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
    }
    items.set(buffer.subarray(start, end), start);
    for (let digit = 0, from = start; digit < ends.length; digit++) {
      const to = ends[digit] as number;
      // Keys that end here are the same, and only a comparison can tell them apart.
      if (to - from > 1) sort(from, to, digit === 0 ? MAX_DEPTH + 1 : depth + 1);
      from = to;
    }
  }
  sort(0, items.length, 0);
}
