import { randomInt } from "node:crypto";
/** Finds row numbers by a hash of 32 bits. Rows may share a hash; each row may be added once. */
export interface HashIndex {
  /** Returns the first row with the hash that matches; -1 if there is none. */
  find(hash: number, isMeant: (row: number) => boolean): number;
  add(hash: number, row: number): void;
  /** Removes a row that was added with this hash. */
  remove(hash: number, row: number): void;
}

const EMPTY = -1;

/**
 * Creates an index: a hash table with linear probing, 8 bytes per slot, at most three quarters full.
 *
 * @param expected number of rows for which it has room from the start, because moving many rows at once takes long
 */
export function createHashIndex(expected = 0): HashIndex {
  let rows = new Int32Array(slotsFor(expected)).fill(EMPTY);
  let hashes = new Int32Array(rows.length);
  let mask = rows.length - 1;
  let size = 0;

  function place(hash: number, row: number): void {
    let slot = hash & mask;
    while (rows[slot] !== EMPTY) slot = (slot + 1) & mask;
    rows[slot] = row;
    hashes[slot] = hash;
  }
  function grow(): void {
    const [oldRows, oldHashes] = [rows, hashes];
    rows = new Int32Array(oldRows.length * 2).fill(EMPTY);
    hashes = new Int32Array(oldRows.length * 2);
    mask = rows.length - 1;
    for (let slot = 0; slot < oldRows.length; slot++) {
      if (oldRows[slot] !== EMPTY) place(oldHashes[slot] as number, oldRows[slot] as number);
    }
  }
  /** Moves the followers of a freed slot up to it, so that a search does not end too early. */
  function close(free: number): void {
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
    find(hash, isMeant) {
      for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
        const row = rows[slot] as number;
        if (row === EMPTY) return -1;
        if (hashes[slot] === hash && isMeant(row)) return row;
      }
    },
    add(hash, row) {
      if ((size + 1) * 4 > rows.length * 3) grow();
      size++;
      place(hash, row);
    },
    remove(hash, row) {
      for (let slot = hash & mask; rows[slot] !== EMPTY; slot = (slot + 1) & mask) {
        if (rows[slot] !== row) continue;
        size--;
        close(slot);
        return;
      }
    },
  };
}

function slotsFor(rows: number): number {
  let slots = 16;
  while (rows * 4 > slots * 3) slots *= 2;
  return slots;
}

/** Hashes a range of bytes to 32 bits. */
export type ByteHash = (bytes: Uint8Array, start: number, end: number) => number;

/** Creates a hash that differs between processes, so that clients cannot prepare colliding names. */
export function createByteHash(seed = randomInt(2 ** 32)): ByteHash {
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
