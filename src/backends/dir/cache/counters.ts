import { type CacheDurations, type CacheFigures, SECONDS_BOUNDS } from "../../../namespace/figures.ts";

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
] as const;

/** Name of a counter. */
export type CounterName = (typeof NAMES)[number];

/** How a read was answered: from the cache alone, or with bytes of the bucket. */
export type Answered = "hit" | "miss";

const BUCKETS = SECONDS_BOUNDS.length + 1;
/** The counts of the buckets of a histogram, and their sum in microseconds. */
const HISTOGRAM = BUCKETS + 1;
const LENGTH = NAMES.length + 2 * HISTOGRAM;

/** Counters that one thread writes and all threads of the process read. */
export interface CacheCounters {
  readonly buffer: SharedArrayBuffer;
  add(name: CounterName, amount: number): void;
  set(name: CounterName, value: number): void;
  get(name: CounterName): number;
  /** Notes how long a read took. */
  time(answered: Answered, seconds: number): void;
  durations(answered: Answered): CacheDurations;
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
      const found = SECONDS_BOUNDS.findIndex((bound) => seconds <= bound);
      add(startOf(answered) + (found < 0 ? BUCKETS - 1 : found), 1);
      add(startOf(answered) + BUCKETS, seconds * 1e6);
    },
    durations(answered) {
      const start = startOf(answered);
      return {
        counts: [...cells.subarray(start, start + BUCKETS)],
        sum: (cells[start + BUCKETS] as number) / 1e6,
      };
    },
  };
}

/** Returns the counts for metrics. */
export function figuresOf({ get, durations }: CacheCounters): CacheFigures {
  return {
    blocks: {
      memory: get("hitsMemory"),
      disk: get("hitsDisk"),
      fetched: get("misses"),
      shared: get("shared"),
    },
    bytes: { hit: get("hitBytes"), fetched: get("fetchedBytes"), written: get("writtenBytes") },
    evictions: { memory: get("evictedMemory"), disk: get("evictedDisk") },
    errors: {
      damaged: get("damagedBlocks"),
      disk: get("diskErrors"),
      bucket: get("storeErrors"),
      skipped: get("skippedWrites"),
    },
    forwarded: get("forwarded"),
    stored: { memory: get("memoryBytes"), disk: get("diskBytes") },
    durations: { hit: durations("hit"), miss: durations("miss") },
  };
}
