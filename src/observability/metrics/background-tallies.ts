import type {
  ClusterOutcome,
  ClusterRuns,
  UpkeepMetrics,
  UpkeepOutcome,
  UpkeepRun,
} from "../../namespace/figures.ts";
import { METRICS, type MetricDeclaration } from "./declarations.ts";
import { countIn, createCounts, type HistogramSample, type Sample } from "./tallies.ts";

/** Counts of the work of jobs on clusters, by database. */
export interface ClusterTallies {
  /** Returns the counts of a database, which exist once something was submitted; the empty text is an only database. */
  of(database: string): ClusterRuns;
  submitted(): Iterable<Sample>;
  running(): Iterable<Sample>;
  ended(): Iterable<Sample>;
  seconds(): Iterable<HistogramSample>;
}

interface ClusterTally {
  submitted: number;
  running: number;
  readonly outcomes: Map<ClusterOutcome, number>;
  readonly counts: number[];
  seconds: number;
}

/** Creates empty tallies. */
export function createClusterTallies(): ClusterTallies {
  const tallies = new Map<string, ClusterTally>();

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

/** Counts of what becomes of events; receivers are named by their addresses, without queries. */
export interface EventTallies {
  attempted(webhook: string, outcome: "delivered" | "failed"): void;
  buried(webhook: string): void;
  lost(webhook: string): void;
  waiting(webhook: string, change: 1 | -1): void;
  /** Returns the metrics and their values. */
  samples(): readonly (readonly [MetricDeclaration, () => Iterable<Sample>])[];
}

/** Creates empty tallies. */
export function createEventTallies(): EventTallies {
  const attempts = createCounter();
  const buried = createCounter();
  const lost = createCounter();
  const waiting = createCounter();
  return {
    attempted: (webhook, outcome) => attempts.add([webhook, outcome], 1),
    buried: (webhook) => buried.add([webhook], 1),
    lost: (webhook) => lost.add([webhook], 1),
    waiting: (webhook, change) => waiting.add([webhook], change),
    samples: () => [
      [METRICS.eventAttempts, attempts.samples],
      [METRICS.eventsWaiting, waiting.samples],
      [METRICS.deadLetters, buried.samples],
      [METRICS.eventsLost, lost.samples],
    ],
  };
}

function createCounter() {
  const counts = new Map<string, { readonly labels: readonly string[]; value: number }>();
  return {
    add(labels: readonly string[], change: number): void {
      const key = labels.join("\n");
      const count = counts.get(key) ?? { labels, value: 0 };
      count.value += change;
      counts.set(key, count);
    },
    samples: (): Iterable<Sample> => counts.values(),
  };
}

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

interface UpkeepTally {
  readonly outcomes: Map<UpkeepOutcome, number>;
  readonly counts: number[];
  readonly sums: Record<keyof UpkeepRun, number>;
  readonly waiting: Set<() => number>;
}

/** Creates empty tallies. */
export function createUpkeepTallies(): UpkeepTallies {
  const tallies = new Map<string, UpkeepTally>();

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

function createTally(): UpkeepTally {
  return {
    outcomes: new Map(),
    counts: createCounts(),
    sums: { seconds: 0, fragmentsRemoved: 0, versionsRemoved: 0, bytesRemoved: 0 },
    waiting: new Set(),
  };
}
