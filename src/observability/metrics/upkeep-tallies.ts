import type { UpkeepMetrics, UpkeepOutcome, UpkeepRun } from "../../namespace/figures/upkeep-runs.ts";
import { countIn, createCounts } from "./buckets.ts";
import type { HistogramSample, Sample } from "./tallies.ts";

/** Counts of the upkeep of tables, by database. */
export interface UpkeepTallies {
  /** Returns the counts of a database, which exist once its tables are watched; the empty text is an only database. */
  of(database: string): UpkeepMetrics;
  runs(): Iterable<Sample>;
  seconds(): Iterable<HistogramSample>;
  /** Returns the sums of a figure. */
  sums(figure: keyof UpkeepRun): Iterable<Sample>;
  waiting(): Iterable<Sample>;
}

interface Tally {
  readonly outcomes: Map<UpkeepOutcome, number>;
  readonly counts: number[];
  readonly sums: Record<keyof UpkeepRun, number>;
  readonly waiting: Set<() => number>;
}

/** Creates empty tallies. */
export function createUpkeepTallies(): UpkeepTallies {
  const tallies = new Map<string, Tally>();

  return {
    of(database) {
      const tally = tallies.get(database) ?? createTally();
      const count = (outcome: UpkeepOutcome) =>
        tally.outcomes.set(outcome, (tally.outcomes.get(outcome) ?? 0) + 1);
      return {
        done(run) {
          count("done");
          countIn(tally.counts, run.seconds);
          for (const figure of FIGURES) tally.sums[figure] += run[figure];
        },
        missed: (outcome) => void count(outcome),
        watch(waiting) {
          tally.waiting.add(waiting);
          tallies.set(database, tally);
          return () => void tally.waiting.delete(waiting);
        },
      };
    },
    *runs() {
      for (const [database, { outcomes }] of tallies) {
        for (const [outcome, value] of outcomes) yield { labels: [database, outcome], value };
      }
    },
    *seconds() {
      for (const [database, { counts, sums }] of tallies) {
        yield { labels: [database], counts, sum: sums.seconds, exemplars: [] };
      }
    },
    *sums(figure) {
      for (const [database, { sums }] of tallies) yield { labels: [database], value: sums[figure] };
    },
    *waiting() {
      for (const [database, { waiting }] of tallies) {
        const value = [...waiting].reduce((sum, each) => sum + each(), 0);
        yield { labels: [database], value };
      }
    },
  };
}

const FIGURES = ["seconds", "fragmentsRemoved", "versionsRemoved", "bytesRemoved"] as const;

function createTally(): Tally {
  return {
    outcomes: new Map(),
    counts: createCounts(),
    sums: { seconds: 0, fragmentsRemoved: 0, versionsRemoved: 0, bytesRemoved: 0 },
    waiting: new Set(),
  };
}
