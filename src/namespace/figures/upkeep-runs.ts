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
