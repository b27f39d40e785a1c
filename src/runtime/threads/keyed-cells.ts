import { hash } from "node:crypto";
import { hasThreadLeft } from "./unbroken-work.ts";

/** Numbers that {@link KeyedCells} keep for a key. */
export interface CellShape {
  /** Numbers of a key, beside the one by which it is forgotten; `"worker"` for a number of each worker. */
  readonly numbers: number | "worker";
  /** Number of keys that are remembered, a multiple of 16. Default: 16,384. */
  readonly keys?: number;
}

/**
 * Changes the numbers of a key, which begin at an index.
 *
 * The first is the key's rank, the others are those of its shape. All are 0 at first. If a new key finds no room, the key with the
 * least rank is forgotten, never one whose rank is infinite.
 */
export type ChangeCells<T> = (numbers: Float64Array, at: number) => T;

/** Numbers by key, in memory that the workers of a process share. */
export interface KeyedCells {
  /** Position of this worker, which has the number of that position where each worker has one. */
  readonly worker: number;
  /** Numbers of a key beside its rank. */
  readonly numbers: number;
  /** Changes the numbers of a key in one step. Returns undefined, without a change, if the key finds no room, or the thread has left. */
  change<T>(key: string, change: ChangeCells<T>): T | undefined;
  /** Reads the numbers of a key in one step, and forgets none for it. Returns undefined for a key that has none. */
  look<T>(key: string, read: ChangeCells<T>): T | undefined;
}

/** Opens the numbers of a limit by its name. */
export type OpenCells = (name: string, shape: CellShape) => KeyedCells;

/** Number of keys whose hashes a thread remembers, and the longest of them: busy callers come again and again. */
const MAX_HASHES = 1_024;
const MAX_HASHED_LENGTH = 256;

/** Keys that share a lock and compete for room. */
const WAYS = 16;
const FREE = 0;
/** Attempts to take a lock before the thread sleeps. */
const SPINS = 100;
/** Longest sleep between attempts, in milliseconds: the lock is held for a microsecond. */
const SLEEP_MS = 1;

/** Attempts after which a lock counts as that of a thread that has ended in it. */
const LAST_TRY = SPINS + 20;

/** The place of a worker among those of its process. */
export interface CellsOwner {
  readonly worker: number;
  readonly workers: number;
}

const ALONE: CellsOwner = { worker: 0, workers: 1 };

/** Returns memory for numbers by key, in which all are 0. */
export function allocateCells(shape: CellShape, workers = 1): SharedArrayBuffer {
  return new SharedArrayBuffer(layoutOf(shape, workers).bytes);
}

/**
 * Opens numbers by key.
 *
 * @param owner Default: the only worker.
 * @param memory what {@link allocateCells} has returned for the shape. Default: memory of their own.
 */
export function openCells(
  shape: CellShape,
  { worker, workers } = ALONE,
  memory?: SharedArrayBuffer,
): KeyedCells {
  const { numbers, stride, cells, locks, tags } = viewsOf(
    shape,
    workers,
    memory ?? allocateCells(shape, workers),
  );
  const hashOf = rememberHashes(locks.length);

  const hasTag = (place: number, { low, high }: KeyHash) =>
    tags[2 * place] === low && tags[2 * place + 1] === high;

  /** Returns the place that a key has; undefined if it has none. */
  function knownPlaceOf(key: KeyHash): number | undefined {
    const first = key.set * WAYS;
    for (let place = first; place < first + WAYS; place++) if (hasTag(place, key)) return place;
    return undefined;
  }

  /** Returns the place of a key, which may be that of a key that is forgotten; undefined if there is none. */
  function placeOf(key: KeyHash): number | undefined {
    const first = key.set * WAYS;
    let least = Number.POSITIVE_INFINITY;
    let found: number | undefined;
    for (let place = first; place < first + WAYS; place++) {
      if (hasTag(place, key)) return place;
      const rank = cells[place * stride] as number;
      if (rank >= least) continue;
      least = rank;
      found = place;
    }
    if (found === undefined) return undefined;
    tags[2 * found] = key.low;
    tags[2 * found + 1] = key.high;
    cells.fill(0, found * stride, (found + 1) * stride);
    return found;
  }

  function locked<T>(
    text: string,
    find: (key: KeyHash) => number | undefined,
    use: ChangeCells<T>,
  ): T | undefined {
    const key = hashOf(text);
    lock(locks, key.set, worker);
    try {
      const place = find(key);
      return place === undefined ? undefined : use(cells, place * stride);
    } finally {
      Atomics.store(locks, key.set, FREE);
    }
  }

  return {
    worker,
    numbers,
    // The numbers of a worker that leaves are its replacement's.
    change: (key, change) => (hasThreadLeft() ? undefined : locked(key, placeOf, change)),
    look: (key, read) => locked(key, knownPlaceOf, read),
  };
}

/** Place of a key: its set, and a tag by which the set knows it. */
interface KeyHash {
  readonly set: number;
  readonly low: number;
  readonly high: number;
}

/** Creates the function that hashes keys for a number of sets. No client can choose keys that collide. */
function rememberHashes(sets: number): (key: string) => KeyHash {
  const known = new Map<string, KeyHash>();
  return (key) => {
    const found = known.get(key);
    if (found !== undefined) return found;
    const digest = hash("sha256", key, "buffer");
    const made = {
      set: digest.readUInt32LE(8) % sets,
      low: digest.readInt32LE(0),
      high: digest.readInt32LE(4),
    };
    if (known.size >= MAX_HASHES) known.clear();
    if (key.length <= MAX_HASHED_LENGTH) known.set(key, made);
    return made;
  };
}

/** Takes the lock of a set; returns false if it is not free after some attempts. */
function lock(locks: Int32Array, set: number, worker: number, attempts = Number.POSITIVE_INFINITY): boolean {
  for (let tries = 1; tries <= attempts; tries++) {
    const holder = Atomics.compareExchange(locks, set, FREE, worker + 1);
    if (holder === FREE) return true;
    if (tries > SPINS) Atomics.wait(locks, set, holder, SLEEP_MS);
  }
  return false;
}

/** Takes back what a worker has counted and locked that has ended. */
export function clearWorker(
  shape: CellShape,
  { worker, workers }: CellsOwner,
  memory: SharedArrayBuffer,
): void {
  const { locks, cells, stride } = viewsOf(shape, workers, memory);
  for (let set = 0; set < locks.length; set++) Atomics.compareExchange(locks, set, worker + 1, FREE);
  if (shape.numbers !== "worker") return;
  for (let place = 0; place < cells.length / stride; place++) {
    const at = place * stride;
    if (cells[at + 1 + worker] === 0) continue;
    const set = Math.floor(place / WAYS);
    // Another thread that has ended may have left the lock, too. The key then keeps its place until it is used again.
    const isLocked = lock(locks, set, worker, LAST_TRY);
    cells[at + 1 + worker] = 0;
    if (!isLocked) continue;
    if (cells.subarray(at + 1, at + stride).every((number) => number === 0)) cells[at] = 0;
    Atomics.store(locks, set, FREE);
  }
}

function viewsOf(shape: CellShape, workers: number, memory: SharedArrayBuffer) {
  const { numbers, keys, sets } = layoutOf(shape, workers);
  const stride = 1 + numbers;
  const cells = new Float64Array(memory, 0, keys * stride);
  const tags = new Int32Array(memory, cells.byteLength, 2 * keys);
  const locks = new Int32Array(memory, cells.byteLength + tags.byteLength, sets);
  return { numbers, stride, cells, tags, locks };
}

function layoutOf({ numbers: each, keys = 16_384 }: CellShape, workers: number) {
  const numbers = each === "worker" ? workers : each;
  const sets = keys / WAYS;
  return { numbers, keys, sets, bytes: keys * (8 * (1 + numbers) + 8) + 4 * sets };
}
