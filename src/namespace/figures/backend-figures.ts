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
export interface CommitFigures {
  /** Groups of changes that were committed, or failed. */
  groups: number;
  /** Changes in these groups. */
  changes: number;
  /** Attempts that were repeated because another process was faster. */
  retries: number;
}

/** Ways in which the catalog is checked: by a stamp in microseconds, or by a look into the storage. */
export type FreshnessCheck = "stamp" | "look";
