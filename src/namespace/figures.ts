/** Figures of a backend, for metrics; each is read when the metrics are. */
export interface BackendFigures {
  /** Changes that wait for the catalog, its commits and what they took, since the start. */
  readonly commits: CommitFigures;
  /** Checks whether the catalog in memory is the newest, since the start, by what they needed. */
  readonly freshnessChecks: Readonly<Record<FreshnessCheck, number>>;
  /** Rows of the catalog in memory. */
  readonly catalogRows: number;
  /** Memory of the texts of these rows, in bytes. */
  readonly catalogBytes: number;
  /** Tables whose handles are open. */
  readonly openTables: number;
  /** Jobs of this process by their states. */
  readonly jobs: Readonly<Record<string, number>>;
}

/** Counts of the commits of a catalog. */
interface CommitFigures {
  /** Groups of changes that were committed, or failed. */
  groups: number;
  /** Changes in these groups. */
  changes: number;
  /** Attempts that were repeated because another process was faster. */
  retries: number;
}

/** Ways in which the catalog is checked: by a stamp in microseconds, or by a look into the storage. */
type FreshnessCheck = "stamp" | "look";

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

/** How the work of a job on a cluster has ended for the gateway that follows it. */
export type ClusterOutcome = "succeeded" | "failed" | "cancelled" | "left";

/** Counts what runs on a cluster for jobs. */
export interface ClusterRuns {
  /** Counts a run of a driver that the cluster has taken, or had taken already. */
  submitted(): void;
  /** Counts work that this process follows; the returned function counts its end. */
  follow(): (outcome: ClusterOutcome) => void;
}

/** Connections of a server since its start, for metrics. */
export interface ConnectionFigures {
  readonly open: number;
  readonly accepted: number;
  /** Bytes from clients, those of TLS included. */
  readonly received: number;
  /** Bytes to clients, those of TLS included. */
  readonly sent: number;
}

/** The decisions of a backend about its upstream, during calls and between them, each with its meaning for people. */
export const UPSTREAM_DECISIONS = {
  retry: "The gateway sent the request again.",
  retry_refused_by_budget: "The request could have been retried, but the retry budget was exhausted.",
  circuit_open:
    "The circuit of an address opened after too many failures; also counted for each call that the open circuit rejects.",
  circuit_half_open: "A single call probes whether the address works again.",
  hedge: "The gateway sent a second request because the first one took long.",
  hedge_won: "The second request answered first.",
  crowded: "The call was rejected because too many calls were in flight and waiting.",
  ejected: "The gateway ejected an address that fails more often than the others.",
  readmitted: "The gateway calls an ejected address again.",
  cache_hit: "The answer came from the cache, or from a concurrent equal request.",
  cache_miss: "The answer could have been cached, and the gateway asked the upstream.",
  cache_revalidated: "The upstream confirmed that the cached answer is still valid.",
} as const satisfies Record<string, string>;

/** A key of {@link UPSTREAM_DECISIONS}. */
export type UpstreamDecision = keyof typeof UPSTREAM_DECISIONS;

/** Counts a decision that belongs to no call, such as the end of an ejection. */
export type NoteDecision = (decision: UpstreamDecision) => void;

/** Upper bounds of the histograms of seconds; a last bucket counts longer durations. */
export const SECONDS_BOUNDS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** Outcomes of the work on tables in the background, each with its meaning for people. */
export const UPKEEP_OUTCOMES = {
  done: "The gateway compacted the table or pruned its versions, as far as there was need.",
  failed:
    "The work failed, for example because writers committed first. The gateway repeats it after a pause.",
  leased: "Another process was working on the table. The gateway looks again after half a minute.",
  busy: "The gateway was building an index of the table or filling a column, or lacked memory for the work. It looks again after seconds.",
} as const satisfies Record<string, string>;

/** A key of {@link UPKEEP_OUTCOMES}. */
export type UpkeepOutcome = keyof typeof UPKEEP_OUTCOMES;

/** Figures of work on a table. */
export interface UpkeepRun {
  readonly seconds: number;
  /** Number of fragments that were joined, or rewritten without their deleted rows. */
  readonly fragmentsRemoved: number;
  readonly versionsRemoved: number;
  /** Size of the files that were removed, in bytes. */
  readonly bytesRemoved: number;
}

/** Counts the work on the tables of a database in the background. */
export interface UpkeepMetrics {
  done(run: UpkeepRun): void;
  /** Counts a table that could not be worked on. */
  missed(outcome: Exclude<UpkeepOutcome, "done">): void;
  /**
   * Adds a function that returns the number of tables that wait to be looked at, or are worked on, until the returned function is
   * called: while the configuration changes, a database may be open twice.
   */
  watch(waiting: () => number): () => void;
}
