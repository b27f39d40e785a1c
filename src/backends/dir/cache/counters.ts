/** Names of the counters, in the order of its shared memory. */
const NAMES = [
  "hitsMemory",
  "hitsDisk",
  "misses",
  "shared",
  "hitBytes",
  "fetchedBytes",
  "forwarded",
  "evictedDisk",
  "evictedMemory",
  "writtenBytes",
  "skippedWrites",
  "damagedBlocks",
  "diskErrors",
  "storeErrors",
  "diskBytes",
  "memoryBytes",
  "objects",
] as const;

/** Name of a counter. */
export type CounterName = (typeof NAMES)[number];

/** Upper bounds of the histograms of seconds. */
export const CACHE_SECONDS_BOUNDS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** How a read was answered: from the cache alone, or with bytes of the bucket. */
export type Answered = "hit" | "miss";

const BUCKETS = CACHE_SECONDS_BOUNDS.length + 1;
/** The counts of the buckets of a histogram, and their sum in microseconds. */
const HISTOGRAM = BUCKETS + 1;
const LENGTH = NAMES.length + 2 * HISTOGRAM;

/** Durations of reads. */
export interface Durations {
  readonly counts: readonly number[];
  readonly sumSeconds: number;
}

/** Counters that one thread writes and all threads of the process read. */
export interface CacheCounters {
  readonly buffer: SharedArrayBuffer;
  add(name: CounterName, amount: number): void;
  set(name: CounterName, value: number): void;
  get(name: CounterName): number;
  /** Notes how long a read took. */
  time(answered: Answered, seconds: number): void;
  durations(answered: Answered): Durations;
}

/** Opens the counters in shared memory, which is allocated by default. */
export function openCounters(buffer = new SharedArrayBuffer(LENGTH * 8)): CacheCounters {
  // A double of eight bytes is written at once, and exact up to 2^53.
  const cells = new Float64Array(buffer);
  const indices = Object.fromEntries(NAMES.map((name, index) => [name, index])) as Record<
    CounterName,
    number
  >;
  const startOf = (answered: Answered) => NAMES.length + (answered === "hit" ? 0 : HISTOGRAM);
  const add = (index: number, amount: number) => {
    cells[index] = (cells[index] as number) + amount;
  };
  return {
    buffer,
    add: (name, amount) => add(indices[name], amount),
    set(name, value) {
      cells[indices[name]] = value;
    },
    get: (name) => cells[indices[name]] as number,
    time(answered, seconds) {
      const found = CACHE_SECONDS_BOUNDS.findIndex((bound) => seconds <= bound);
      add(startOf(answered) + (found < 0 ? BUCKETS - 1 : found), 1);
      add(startOf(answered) + BUCKETS, seconds * 1e6);
    },
    durations(answered) {
      const start = startOf(answered);
      return {
        counts: [...cells.subarray(start, start + BUCKETS)],
        sumSeconds: (cells[start + BUCKETS] as number) / 1e6,
      };
    },
  };
}
