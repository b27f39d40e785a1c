import { CHANGES_BYTES, type Changes, createChanges } from "../../runtime/threads/changes.ts";
import {
  allocateCells,
  type CellShape,
  type CellsOwner,
  clearWorker,
  type OpenCells,
  openCells,
} from "../../runtime/threads/keyed-cells.ts";
import type { SharedCounter, SharedQuantity } from "../../runtime/threads/sharing.ts";
import { hasThreadLeft } from "../../runtime/threads/unbroken-work.ts";

/** Numbers of workers and databases, which give shared memory its layout. */
export interface MemoryShape {
  readonly workers: number;
  readonly databases: number;
}

/** Quantities of a worker. */
type Quantity = "bufferedBytes" | "answerBytes" | "connections" | "files" | "unbroken";
/** Quantities of a worker for each database. */
type DatabaseQuantity = "calls" | "tableUseMs";
/** Numbers of a database that all workers change. */
type DatabaseCounter = "catalogVersion" | "upstreamWrites";

/** The memory that the threads of a process share: a block of cells for each worker, and counters. */
export interface SharedMemory {
  readonly buffer: SharedArrayBuffer;
  readonly shape: MemoryShape;
  /** Returns a quantity as a worker sees it, or as the supervisor does, which has no part of its own. */
  quantity(worker: number | undefined, name: Quantity): SharedQuantity;
  databaseQuantity(worker: number, database: number, name: DatabaseQuantity): SharedQuantity;
  counter(database: number, name: DatabaseCounter): SharedCounter;
  /** Returns the counts of changes of a database's tables. */
  tableChanges(database: number): Changes;
  /** Notes that the event loop of a worker turns. */
  beat(worker: number): void;
  /** Returns how often a worker's event loop has been seen to turn. */
  beatsOf(worker: number): number;
  /** Returns how much work runs in a worker that must have ended before its thread does. */
  unbrokenOf(worker: number): number;
  /** Empties the cells of a worker that has ended. */
  clear(worker: number): void;
}

/** Cells of a cache line, so that workers do not write to each other's lines. */
const LINE = 16;
const BEAT = 0;
const QUANTITIES = {
  bufferedBytes: { cell: 1, unit: 1024 },
  connections: { cell: 2, unit: 1 },
  files: { cell: 3, unit: 1 },
  answerBytes: { cell: 4, unit: 1024 },
  unbroken: { cell: 5, unit: 1 },
} as const;
const FIRST_DATABASE = 6;
const DATABASE_QUANTITIES = { calls: 0, tableUseMs: 1 } as const;
const COUNTERS = { catalogVersion: 0, upstreamWrites: 1 } as const;
const LARGEST = 2 ** 31 - 1;

/**
 * Opens the memory that workers share.
 *
 * @param buffer Default: new memory, in which everything is 0.
 */
export function openSharedMemory(shape: MemoryShape, buffer?: SharedArrayBuffer): SharedMemory {
  const block = Math.ceil((FIRST_DATABASE + 2 * shape.databases) / LINE) * LINE;
  const bytes = block * shape.workers * Int32Array.BYTES_PER_ELEMENT;
  const numbers = 2 * shape.databases;
  const changes = bytes + numbers * BigInt64Array.BYTES_PER_ELEMENT;
  const memory = buffer ?? new SharedArrayBuffer(changes + shape.databases * CHANGES_BYTES);
  const cells = new Int32Array(memory, 0, block * shape.workers);
  // They count for as long as a catalog exists.
  const counters = new BigInt64Array(memory, bytes, numbers);

  /** @param unit what a cell counts by: parts are rounded up to it */
  function quantityAt(worker: number | undefined, offset: number, unit: number): SharedQuantity {
    const own = worker === undefined ? undefined : worker * block + offset;
    const others = Array.from({ length: shape.workers }, (_, other) => other * block + offset).filter(
      (cell) => cell !== own,
    );
    let published = 0;
    return {
      workers: shape.workers,
      publish(part) {
        const units = Math.min(Math.ceil(part / unit), LARGEST);
        // The cell of a worker that leaves is its replacement's.
        if (own === undefined || units === published || hasThreadLeft()) return;
        published = units;
        Atomics.store(cells, own, units);
      },
      get others() {
        let sum = 0;
        for (const cell of others) sum += Atomics.load(cells, cell);
        return sum * unit;
      },
      get largestOther() {
        return Math.max(0, ...others.map((cell) => Atomics.load(cells, cell))) * unit;
      },
    };
  }
  return {
    buffer: memory,
    shape,
    quantity: (worker, name) => quantityAt(worker, QUANTITIES[name].cell, QUANTITIES[name].unit),
    databaseQuantity: (worker, database, name) =>
      quantityAt(worker, FIRST_DATABASE + 2 * database + DATABASE_QUANTITIES[name], 1),
    counter(database, name) {
      const at = 2 * database + COUNTERS[name];
      return {
        get value() {
          return Number(Atomics.load(counters, at));
        },
        raise(to) {
          const wanted = BigInt(to);
          for (let seen = Atomics.load(counters, at); seen < wanted; ) {
            const found = Atomics.compareExchange(counters, at, seen, wanted);
            if (found === seen) return;
            seen = found;
          }
        },
        increment: () => Number(Atomics.add(counters, at, 1n)),
      };
    },
    tableChanges(database) {
      const length = CHANGES_BYTES / Int32Array.BYTES_PER_ELEMENT;
      return createChanges(new Int32Array(memory, changes + database * CHANGES_BYTES, length));
    },
    beat(worker) {
      Atomics.add(cells, worker * block + BEAT, 1);
    },
    beatsOf: (worker) => Atomics.load(cells, worker * block + BEAT),
    unbrokenOf: (worker) => Atomics.load(cells, worker * block + QUANTITIES.unbroken.cell),
    clear(worker) {
      for (let cell = 0; cell < block; cell++) Atomics.store(cells, worker * block + cell, 0);
    },
  };
}

/** How often the beats are looked at within the time after which a worker counts as blocked. */
const LOOKS = 10;
/** How many times as long a worker may take that starts: it loads the engine, which holds its event loop. */
const STARTING = 10;

/** The watch over the event loops of workers. */
interface BeatWatch {
  /** Watches a worker from now on; one that only starts may be silent for ten times as long. */
  begin(worker: number, isStarting: boolean): void;
  end(worker: number): void;
  close(): void;
}

/**
 * Watches whether the event loops of workers turn. It counts its own looks instead of time: when the whole process was
 * suspended, no worker is to blame.
 *
 * @param onBlocked called once for a worker whose loop has not turned for `timeoutMs` milliseconds
 */
export function watchBeats(
  memory: SharedMemory,
  timeoutMs: number,
  onBlocked: (worker: number) => void,
): BeatWatch {
  const watched = new Map<number, { beats: number; silentLooks: number; readonly maxLooks: number }>();

  function look(): void {
    for (const [worker, seen] of watched) {
      const beats = memory.beatsOf(worker);
      seen.silentLooks = beats === seen.beats ? seen.silentLooks + 1 : 0;
      seen.beats = beats;
      if (seen.silentLooks < seen.maxLooks) continue;
      watched.delete(worker);
      onBlocked(worker);
    }
  }
  const timer = setInterval(look, timeoutMs / LOOKS).unref();
  return {
    begin(worker, isStarting) {
      const maxLooks = isStarting ? LOOKS * STARTING : LOOKS;
      watched.set(worker, { beats: memory.beatsOf(worker), silentLooks: 0, maxLooks });
    },
    end: (worker) => watched.delete(worker),
    close: () => clearInterval(timer),
  };
}

/** Memory for the numbers of limits, by name. */
export type CellsMemory = Readonly<
  Record<string, { readonly shape: CellShape; readonly memory: SharedArrayBuffer }>
>;

/** Allocates the memory for the numbers of some limits, which the workers of a process share. */
export function allocateAll(shapes: Readonly<Record<string, CellShape>>, workers: number): CellsMemory {
  const entries = Object.entries(shapes);
  return Object.fromEntries(
    entries.map(([name, shape]) => [name, { shape, memory: allocateCells(shape, workers) }]),
  );
}

/** Returns the numbers of limits as a worker sees them. */
export function openAll(all: CellsMemory, owner: CellsOwner): OpenCells {
  return (name) => {
    const found = all[name];
    if (found === undefined) throw new Error(`the workers do not share ${name}`);
    return openCells(found.shape, owner, found.memory);
  };
}

/** Takes back what a worker has counted and locked that has ended. */
export function clearAll(all: CellsMemory, owner: CellsOwner): void {
  for (const { shape, memory } of Object.values(all)) clearWorker(shape, owner, memory);
}
