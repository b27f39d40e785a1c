/** Row numbers in an order. Reading from any place on needs no sorting, and a change moves at most a block. */
export interface OrderedRows {
  /** Adds a row, whose place in the order must be unique. */
  add(row: number): void;
  remove(row: number): void;
  /** Iterates over the rows from the first one on that `isBefore` rejects; it must accept all earlier ones. */
  from(isBefore: (row: number) => boolean): IterableIterator<number>;
  /** Returns the first of the rows of {@link OrderedRows.from}. */
  first(isBefore: (row: number) => boolean): number | undefined;
}

/** Maximum number of rows of a block. */
const BLOCK_ROWS = 512;

interface Block {
  readonly rows: Int32Array;
  count: number;
}

/**
 * Keeps rows in order.
 *
 * @param sorted the first rows, which are in order
 * @param compare a total order
 */
export function createOrderedRows(
  sorted: Int32Array,
  compare: (a: number, b: number) => number,
): OrderedRows {
  const blocks: Block[] = [];
  // Blocks keep room for later rows.
  const filled = (BLOCK_ROWS * 3) / 4;
  for (let at = 0; at < sorted.length; at += filled) blocks.push(blockOf(sorted.subarray(at, at + filled)));
  if (blocks.length === 0) blocks.push(blockOf([]));

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
  function split(index: number): void {
    const block = blocks[index] as Block;
    const half = block.count >> 1;
    blocks.splice(index + 1, 0, blockOf(block.rows.subarray(half, block.count)));
    block.count = half;
  }
  /** Joins a block with the next one if both together leave enough room. */
  function join(index: number): void {
    const [block, next] = [blocks[index], blocks[index + 1]];
    if (block === undefined || next === undefined || block.count + next.count > BLOCK_ROWS / 2) return;
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
      const block = blocks[index] as Block;
      block.rows.copyWithin(at + 1, at, block.count);
      block.rows[at] = row;
      block.count++;
    },
    remove(row) {
      const [index, at] = locate((other) => compare(other, row) < 0);
      const block = blocks[index] as Block;
      if (at === block.count || block.rows[at] !== row) return;
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
  };
}

function blockOf(rows: ArrayLike<number>): Block {
  const block = { rows: new Int32Array(BLOCK_ROWS), count: rows.length };
  block.rows.set(rows);
  return block;
}
