import { randomInt } from "node:crypto";
import { atOnce, ITEMS_PER_STEP, type Steps } from "../../../../../runtime/pace.ts";
import type { Memory } from "../memory.ts";

/** Finds row numbers by a hash of 32 bits. Rows may share a hash; each row may be added once. */
export interface HashIndex {
  /**
   * Returns the first row with the hash that matches; -1 if there is none. It may also offer removed rows, and rows
   * that have another hash by now.
   */
  find(hash: number, isMeant: (row: number) => boolean): number;
  add(hash: number, row: number): void;
  /** Removes a row that was added with this hash. */
  remove(hash: number, row: number): void;
  /**
   * Prepares to share the index: joins tables, so that few remain.
   *
   * @param isCurrent whether a row exists and has a hash
   */
  prepareToShare(isCurrent: (hash: number, row: number) => boolean): Steps<void>;
  /** Returns the index as tables that are not changed from now on. */
  share(): readonly HashTable[];
}

/** A hash table with linear probing, 8 bytes per slot, at most three quarters full. */
export interface HashTable {
  /** The numbers of the rows plus 1; 0 in an empty slot, so that new memory is an empty table. */
  readonly rows: Int32Array;
  readonly hashes: Int32Array;
  /** Number of entries. */
  readonly size: number;
}

const NONE = -1;
const EMPTY = 0;
/** A slot of the table before a growth whose row was removed before it moved. */
const REMOVED = -1;

/** Slots whose entries move at each change after a table has doubled: all have moved long before it doubles again. */
const MOVED_PER_CHANGE = 8;

/** How many times as large as the next younger table a table is at least. */
const GROWTH = 8;

/**
 * Creates an index: a table that changes, and older ones that do not.
 *
 * @param expected number of rows for which it has room from the start, because moving many rows at once takes long
 * @param older tables of another index, from the oldest on, which are not changed. Default: none.
 */
export function createHashIndex(
  expected: number,
  memory: Memory,
  older: readonly HashTable[] = [],
): HashIndex {
  let tables = older;
  let young = createTable(expected, memory);

  /** Joins two tables without the entries that are no longer current. */
  function* join(a: HashTable, b: HashTable, isCurrent: (hash: number, row: number) => boolean) {
    const joined = createTable(a.size + b.size, memory);
    for (const { rows, hashes } of [a, b]) {
      for (let slot = 0; slot < rows.length; slot++) {
        if (slot % ITEMS_PER_STEP === 0) yield;
        const [row, hash] = [(rows[slot] as number) - 1, hashes[slot] as number];
        if (row !== NONE && isCurrent(hash, row)) joined.add(hash, row);
      }
    }
    return joined.table();
  }
  function setAside(): void {
    // Few entries are left to move: sharing was prepared.
    atOnce(young.moveRest());
    const table = young.table();
    if (table.size === 0) return;
    tables = [...tables, table];
    young = createTable(0, memory);
  }
  return {
    find(hash, isMeant) {
      const found = young.find(hash, isMeant);
      if (found >= 0) return found;
      for (const table of tables) {
        const row = findIn(table, hash, isMeant);
        if (row >= 0) return row;
      }
      return NONE;
    },
    add: (hash, row) => young.add(hash, row),
    remove: (hash, row) => young.remove(hash, row),
    *prepareToShare(isCurrent) {
      yield* young.moveRest();
      setAside();
      for (;;) {
        const [a, b] = tables.slice(-2);
        if (a === undefined || b === undefined || b.size * GROWTH < a.size) return;
        const joined = yield* join(a, b, isCurrent);
        tables = [...tables.slice(0, -2), joined];
      }
    },
    share() {
      setAside();
      return tables;
    },
  };
}

function findIn({ rows, hashes }: Slots, hash: number, isMeant: (row: number) => boolean): number {
  const mask = rows.length - 1;
  for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
    const entry = rows[slot] as number;
    if (entry === EMPTY) return NONE;
    if (hashes[slot] === hash && entry !== REMOVED && isMeant(entry - 1)) return entry - 1;
  }
}

type Slots = Pick<HashTable, "rows" | "hashes">;

/** Creates a table that grows. Moving its entries is part of the changes that follow, because all at once take long. */
function createTable(expected: number, memory: Memory) {
  let slots = takeSlots(slotsFor(expected), memory);
  let size = 0;
  /** The slots before the last growth, which keep what has moved, and how many of them have moved. */
  let former: Slots | undefined;
  let moved = 0;

  function place(hash: number, entry: number): void {
    const { rows, hashes } = slots;
    const mask = rows.length - 1;
    let slot = hash & mask;
    while (rows[slot] !== EMPTY) slot = (slot + 1) & mask;
    rows[slot] = entry;
    hashes[slot] = hash;
  }
  function grow(): void {
    [former, moved] = [slots, 0];
    slots = takeSlots(slots.rows.length * 2, memory);
  }
  function move(count: number): void {
    if (former === undefined) return;
    const { rows, hashes } = former;
    for (const end = Math.min(moved + count, rows.length); moved < end; moved++) {
      const entry = rows[moved] as number;
      if (entry !== EMPTY && entry !== REMOVED) place(hashes[moved] as number, entry);
    }
    if (moved === rows.length) former = undefined;
  }
  /** Moves the followers of a freed slot up to it, so that a search does not end too early. */
  function close(free: number): void {
    const { rows, hashes } = slots;
    const mask = rows.length - 1;
    let hole = free;
    for (let slot = (hole + 1) & mask; rows[slot] !== EMPTY; slot = (slot + 1) & mask) {
      const home = (hashes[slot] as number) & mask;
      if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
      rows[hole] = rows[slot] as number;
      hashes[hole] = hashes[slot] as number;
      hole = slot;
    }
    rows[hole] = EMPTY;
  }
  return {
    find(hash: number, isMeant: (row: number) => boolean): number {
      const found = findIn(slots, hash, isMeant);
      return found >= 0 || former === undefined ? found : findIn(former, hash, isMeant);
    },
    add(hash: number, row: number): void {
      move(MOVED_PER_CHANGE);
      if ((size + 1) * 4 > slots.rows.length * 3) grow();
      size++;
      place(hash, row + 1);
    },
    remove(hash: number, row: number): void {
      move(MOVED_PER_CHANGE);
      const slot = slotOf(slots, hash, row);
      const earlier = slot < 0 && former !== undefined ? slotOf(former, hash, row) : NONE;
      if (slot >= 0) close(slot);
      else if (earlier >= 0) (former as Slots).rows[earlier] = REMOVED;
      else return;
      size--;
    },
    /** Moves the entries that have not moved since the last growth; the table may change meanwhile. */
    *moveRest(): Steps<void> {
      for (; former !== undefined; move(ITEMS_PER_STEP)) yield;
    },
    /** Returns the table, once everything has moved. */
    table: (): HashTable => ({ ...slots, size }),
  };
}

/** Returns the slot of a row; -1 if it has none. */
function slotOf({ rows }: Slots, hash: number, row: number): number {
  const mask = rows.length - 1;
  for (let slot = hash & mask; rows[slot] !== EMPTY; slot = (slot + 1) & mask) {
    if (rows[slot] === row + 1) return slot;
  }
  return NONE;
}

function takeSlots(count: number, memory: Memory): Slots {
  const bytes = count * Int32Array.BYTES_PER_ELEMENT;
  return { rows: new Int32Array(memory.take(bytes)), hashes: new Int32Array(memory.take(bytes)) };
}

function slotsFor(rows: number): number {
  let slots = 16;
  while (rows * 4 > slots * 3) slots *= 2;
  return slots;
}

/** Hashes a range of bytes to 32 bits. */
export type ByteHash = (bytes: Uint8Array, start: number, end: number) => number;

/** Draws the seed of a hash, so that clients cannot prepare colliding names. */
export function newSeed(): number {
  return randomInt(2 ** 32);
}

/** Creates a hash from a seed. */
export function createByteHash(seed: number): ByteHash {
  return (bytes, start, end) => {
    let hash = seed | 0;
    for (let i = start; i < end; i++) {
      hash = Math.imul(hash ^ (bytes[i] as number), 0x0100_0193);
      hash ^= hash >>> 13;
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
    return hash ^ (hash >>> 16);
  };
}
