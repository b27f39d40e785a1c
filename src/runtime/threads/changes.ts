import { crc32 } from "node:zlib";

/** Counts of changes of things that have keys, which all workers of a process see. */
export interface Changes {
  /** Returns a number that is another one after a change of the thing; a change of some other things alters it, too. */
  of(key: string): number;
  note(key: string): void;
}

/** Number of counters, each of which counts the changes of many keys. */
const CELLS = 256;

/** Size of the memory of {@link createChanges}, in bytes. */
export const CHANGES_BYTES = CELLS * Int32Array.BYTES_PER_ELEMENT;

/**
 * Creates counts of changes.
 *
 * @param cells memory that other threads have, too. Default: there are none
 */
export function createChanges(cells: Int32Array = new Int32Array(CELLS)): Changes {
  const cellOf = (key: string) => crc32(key) % CELLS;
  return {
    of: (key) => Atomics.load(cells, cellOf(key)),
    note(key) {
      Atomics.add(cells, cellOf(key), 1);
    },
  };
}
