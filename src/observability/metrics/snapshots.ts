import type { Registry } from "prom-client";
import type { Library } from "./collectors.ts";
import type { Exemplar } from "./tallies.ts";

/** The library with its metrics of this thread and its process. */
export interface Watched {
  readonly library: Library;
  /** Shared by all gateways in the thread. */
  readonly registry: Registry;
}

/** Gauges with names of counters, which also exist by type under other names. */
const MISNAMED = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

let watched: Promise<Watched> | undefined;

/** Starts to observe the process, once; the library counts from then on. */
export function watchProcess(): Promise<Watched> {
  watched ??= import("prom-client").then(
    ({ default: library }) => {
      const registry = new library.Registry();
      library.collectDefaultMetrics({ register: registry });
      for (const name of MISNAMED) registry.removeSingleMetric(name);
      return { library, registry };
    },
    (error: unknown) => {
      watched = undefined;
      throw error;
    },
  );
  return watched;
}

/** Begin of the names of metrics that are equal in all threads of a process; the others are of a thread. */
const OF_PROCESS = "process_";

/** Returns the metrics of the process, or those of this thread. */
export async function readWatched(of: "process" | "thread"): Promise<Snapshot> {
  const { registry } = await watchProcess();
  const all = (await registry.getMetricsAsJSON()) as unknown as Snapshot;
  return all.filter(({ name }) => name.startsWith(OF_PROCESS) === (of === "process"));
}

/** The values of a metric at a time, in the form of prom-client, which can be sent to another thread. */
export interface MetricSnapshot {
  readonly name: string;
  readonly type: unknown;
  readonly values: readonly SnapshotValue[];
}

interface SnapshotValue {
  readonly value: number;
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  /** Null in the histograms of prom-client. */
  exemplar?: Exemplar | null | undefined;
}

/** Metrics of one thread. */
export type Snapshot = readonly MetricSnapshot[];

/** Metrics of a process with workers. */
export interface ProcessSnapshot {
  /** Metrics of each worker, and the last counts of workers that have ended. */
  readonly workers: readonly Snapshot[];
  /** Metrics that exist once in a process. */
  readonly process: Snapshot;
}

/** Adds snapshots up: each metric in the way that it declares, by default as a sum. */
export async function aggregate(
  { AggregatorRegistry }: Library,
  all: readonly Snapshot[],
): Promise<Snapshot> {
  const registry = AggregatorRegistry.aggregate(all as object[][]);
  const sums = (await registry.getMetricsAsJSON()) as unknown as Snapshot;
  const newest = newestExemplars(all);
  if (newest.size === 0) return sums;
  for (const { name, values } of sums) {
    for (const value of values) value.exemplar = newest.get(seriesOf(name, value));
  }
  return sums;
}

/** The library drops exemplars when it adds up. */
function newestExemplars(all: readonly Snapshot[]): Map<string, Exemplar> {
  const newest = new Map<string, Exemplar>();
  for (const { name, values } of all.flat()) {
    for (const value of values) {
      if (!value.exemplar) continue;
      const series = seriesOf(name, value);
      const known = newest.get(series);
      if (known === undefined || known.timestamp < value.exemplar.timestamp)
        newest.set(series, value.exemplar);
    }
  }
  return newest;
}

function seriesOf(name: string, { metricName = name, labels }: SnapshotValue): string {
  return JSON.stringify([metricName, Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))]);
}

const KEPT = ["counter", "histogram"];

/** Returns the metrics that only grow; those of a thread that has ended still belong to its process. */
export function growing(snapshot: Snapshot): Snapshot {
  return snapshot.filter(({ type }) => KEPT.includes(String(type)));
}
