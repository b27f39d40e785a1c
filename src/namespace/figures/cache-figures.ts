/** Durations of the reads through a cache. */
export interface CacheDurations {
  /** Number of reads in each bucket of the histograms of seconds. */
  readonly counts: readonly number[];
  /** In seconds. */
  readonly sum: number;
}

/** Figures of the cache of a process, for metrics. Each group has its counts by the value of a label. */
export interface CacheFigures {
  readonly blocks: Readonly<Record<"memory" | "disk" | "fetched" | "shared", number>>;
  /** Bytes of reads from the cache alone, of blocks from the bucket, and of blocks to the disk. */
  readonly bytes: Readonly<Record<"hit" | "fetched" | "written", number>>;
  readonly evictions: Readonly<Record<"memory" | "disk", number>>;
  readonly errors: Readonly<Record<"damaged" | "disk" | "bucket" | "skipped", number>>;
  /** Requests that were passed on. */
  readonly forwarded: number;
  /** Bytes that are in the cache now. */
  readonly stored: Readonly<Record<"memory" | "disk", number>>;
  /** Durations by whether the bucket was needed. */
  readonly durations: Readonly<Record<"hit" | "miss", CacheDurations>>;
}
