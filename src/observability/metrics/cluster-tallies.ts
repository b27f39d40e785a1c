import type { ClusterOutcome, ClusterRuns } from "../../namespace/figures/cluster-runs.ts";
import { countIn, createCounts } from "./buckets.ts";
import type { HistogramSample, Sample } from "./tallies.ts";

/** Counts of the work of jobs on clusters, by database. */
export interface ClusterTallies {
  /** Returns the counts of a database, which exist once something was submitted; the empty text is an only database. */
  of(database: string): ClusterRuns;
  submitted(): Iterable<Sample>;
  running(): Iterable<Sample>;
  ended(): Iterable<Sample>;
  seconds(): Iterable<HistogramSample>;
}

interface Tally {
  submitted: number;
  running: number;
  readonly outcomes: Map<ClusterOutcome, number>;
  readonly counts: number[];
  seconds: number;
}

/** Creates empty tallies. */
export function createClusterTallies(): ClusterTallies {
  const tallies = new Map<string, Tally>();

  return {
    of(database) {
      const known = tallies.get(database);
      const tally = known ?? {
        ...{ submitted: 0, running: 0, outcomes: new Map(), counts: createCounts(), seconds: 0 },
      };
      return {
        submitted() {
          tallies.set(database, tally);
          tally.submitted += 1;
        },
        follow() {
          tallies.set(database, tally);
          const since = performance.now();
          tally.running += 1;
          return (outcome) => {
            const seconds = (performance.now() - since) / 1000;
            tally.running -= 1;
            tally.outcomes.set(outcome, (tally.outcomes.get(outcome) ?? 0) + 1);
            tally.seconds += seconds;
            countIn(tally.counts, seconds);
          };
        },
      };
    },
    *submitted() {
      for (const [database, { submitted }] of tallies) yield { labels: [database], value: submitted };
    },
    *running() {
      for (const [database, { running }] of tallies) yield { labels: [database], value: running };
    },
    *ended() {
      for (const [database, { outcomes }] of tallies)
        for (const [outcome, value] of outcomes) yield { labels: [database, outcome], value };
    },
    *seconds() {
      for (const [database, { counts, seconds }] of tallies)
        yield { labels: [database], counts, sum: seconds, exemplars: [] };
    },
  };
}
