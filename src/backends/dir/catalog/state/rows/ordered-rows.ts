import type { Steps } from "../../../../../runtime/pace.ts";
import type { Memory } from "../memory.ts";

/** Row numbers in an order. Reading from any place on needs no sorting, and a change moves at most a block. */
export interface OrderedRows {
  /** Adds a row, whose place in the order must be unique. */
  add(row: number): void;
  remove(row: number): void;
  /** Iterates over the rows from the first one on that `isBefore` rejects; it must accept all earlier ones. */
  from(isBefore: (row: number) => boolean): IterableIterator<number>;
  /** Returns the first of the rows of {@link OrderedRows.from}. */
  first(isBefore: (row: number) => boolean): number | undefined;
  /** Returns the rows in memory that is not changed from now on. */
  share(): SharedOrder;
}

/** Row numbers in an order, in blocks that follow one another. */
export interface SharedOrder {
  readonly rows: Int32Array;
  /** Number of rows of each block. */
  readonly counts: readonly number[];
}

/** Maximum number of rows of a block. */
const BLOCK_ROWS = 512;

interface Block {
  rows: Int32Array;
  count: number;
  /** Whether it has room, and nobody else reads it; otherwise it is copied before it is changed. */
  isOwn: boolean;
}

/** Cuts rows that are in order into blocks, which get room for later rows when they are changed. */
export function inBlocks(rows: Int32Array): SharedOrder {
  const filled = (BLOCK_ROWS * 3) / 4;
  const counts: number[] = [];
  for (let at = 0; at < rows.length; at += filled) counts.push(Math.min(filled, rows.length - at));
  return { rows, counts };
}

/**
 * Keeps rows in order.
 *
 * @param sorted the first rows, which are in order
 * @param compare a total order
 */
export function createOrderedRows(
  sorted: SharedOrder,
  compare: (a: number, b: number) => number,
  memory: Memory,
): OrderedRows {
  let blocks = blocksOf(sorted);

  /**
   * Returns the block, and the place in it, of the first row that is not before; the end of the last block if there is
   * none.
   */
  function locate(isBefore: (row: number) => boolean): [block: number, at: number] {
    let [low, high] = [0, blocks.length - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const { rows, count } = blocks[middle] as Block;
      if (isBefore(rows[count - 1] as number)) low = middle + 1;
      else high = middle;
    }
    const { rows, count } = blocks[low] as Block;
    let [start, end] = [0, count];
    while (start < end) {
      const middle = (start + end) >>> 1;
      if (isBefore(rows[middle] as number)) start = middle + 1;
      else end = middle;
    }
    return [low, start];
  }
  function writable(index: number): Block {
    const block = blocks[index] as Block;
    if (!block.isOwn) [block.rows, block.isOwn] = [copied(block.rows), true];
    return block;
  }
  function split(index: number): void {
    const block = blocks[index] as Block;
    const half = block.count >> 1;
    const rows = copied(block.rows.subarray(half, block.count));
    blocks.splice(index + 1, 0, { rows, count: block.count - half, isOwn: true });
    block.count = half;
  }
  /** Joins a block with the next one if both together leave enough room. */
  function join(index: number): void {
    const [before, next] = [blocks[index], blocks[index + 1]];
    if (before === undefined || next === undefined || before.count + next.count > BLOCK_ROWS / 2) return;
    const block = writable(index);
    block.rows.set(next.rows.subarray(0, next.count), block.count);
    block.count += next.count;
    blocks.splice(index + 1, 1);
  }
  return {
    add(row) {
      const isBefore = (other: number) => compare(other, row) < 0;
      let [index, at] = locate(isBefore);
      if (blocks[index]?.count === BLOCK_ROWS) {
        split(index);
        [index, at] = locate(isBefore);
      }
      const block = writable(index);
      block.rows.copyWithin(at + 1, at, block.count);
      block.rows[at] = row;
      block.count++;
    },
    remove(row) {
      const [index, at] = locate((other) => compare(other, row) < 0);
      const found = blocks[index] as Block;
      if (at === found.count || found.rows[at] !== row) return;
      const block = writable(index);
      block.rows.copyWithin(at, at + 1, block.count);
      block.count--;
      if (block.count === 0 && blocks.length > 1) {
        blocks.splice(index, 1);
        return;
      }
      join(index);
      join(index - 1);
    },
    *from(isBefore) {
      let [index, at] = locate(isBefore);
      for (; index < blocks.length; index++, at = 0) {
        const { rows, count } = blocks[index] as Block;
        for (; at < count; at++) yield rows[at] as number;
      }
    },
    first(isBefore) {
      const [index, at] = locate(isBefore);
      const { rows, count } = blocks[index] as Block;
      return at < count ? rows[at] : undefined;
    },
    share() {
      const counts = blocks.map(({ count }) => count);
      const total = counts.reduce((sum, count) => sum + count, 0);
      const rows = new Int32Array(memory.take(total * Int32Array.BYTES_PER_ELEMENT));
      let at = 0;
      for (const block of blocks) {
        rows.set(block.rows.subarray(0, block.count), at);
        at += block.count;
      }
      const shared = { rows, counts };
      blocks = blocksOf(shared);
      return shared;
    },
  };
}

function blocksOf({ rows, counts }: SharedOrder): Block[] {
  let at = 0;
  const blocks = counts.map((count): Block => {
    const block = { rows: rows.subarray(at, at + count), count, isOwn: false };
    at += count;
    return block;
  });
  return blocks.length > 0 ? blocks : [{ rows: copied([]), count: 0, isOwn: true }];
}

function copied(rows: ArrayLike<number>): Int32Array {
  const copy = new Int32Array(BLOCK_ROWS);
  copy.set(rows);
  return copy;
}

/** Keys of numbered items: digits below `radix`, from the most significant one on. */
interface RadixKeys {
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
