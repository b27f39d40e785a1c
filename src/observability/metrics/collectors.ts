import type { Metric, Registry } from "prom-client";
import {
  type BackendFigures,
  type CacheFigures,
  type ConnectionFigures,
  SECONDS_BOUNDS,
} from "../../namespace/figures.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { inSlices, type Steps } from "../../runtime/pace.ts";
import type { ClusterTallies, EventTallies, UpkeepTallies } from "./background-tallies.ts";
import { METRICS, type MetricDeclaration } from "./declarations.ts";
import type { HistogramSample, Sample, Tallies } from "./tallies.ts";

/** Parts of the gateway that keep their own figures, which are read with the metrics. */
export interface Sources {
  /** Adds a backend; the empty text is an only database. */
  watchBackend(database: string, backend: Pick<Backend, "name" | "figures">): void;
  forgetBackend(database: string): void;
  watchConnections(figures: () => ConnectionFigures): void;
  /** Returns the names of the backends. */
  backendNames(): Iterable<Sample>;
  /** Returns a figure of each backend that has figures. */
  ofBackends(read: (figures: BackendFigures) => number): Iterable<Sample>;
  /** Returns figures with names of each backend that has figures. */
  namedOfBackends(read: (figures: BackendFigures) => Readonly<Record<string, number>>): Iterable<Sample>;
  /** Returns a figure of the connections; nothing before the server listens. */
  ofConnections(read: (figures: ConnectionFigures) => number): Iterable<Sample>;
  traffic(): Iterable<Sample>;
  /** Adds the cache of the process; without one, its metrics have no values. */
  watchCache(figures: () => CacheFigures): void;
  ofCache(read: (figures: CacheFigures) => number): Iterable<Sample>;
  namedOfCache(read: (figures: CacheFigures) => Readonly<Record<string, number>>): Iterable<Sample>;
  cacheSeconds(): Iterable<HistogramSample>;
}

/** Creates a set of sources, which is empty. */
export function createSources(): Sources {
  const backends = new Map<string, Pick<Backend, "name" | "figures">>();
  let connections: (() => ConnectionFigures) | undefined;
  let cache: (() => CacheFigures) | undefined;

  return {
    watchBackend: (database, backend) => void backends.set(database, backend),
    forgetBackend: (database) => void backends.delete(database),
    watchConnections(figures) {
      connections = figures;
    },
    *backendNames() {
      for (const [database, { name }] of backends) yield { labels: [database, name], value: 1 };
    },
    *ofBackends(read) {
      for (const [database, figures] of figuresOf(backends))
        yield { labels: [database], value: read(figures) };
    },
    *namedOfBackends(read) {
      for (const [database, figures] of figuresOf(backends)) {
        for (const [name, value] of Object.entries(read(figures))) yield { labels: [database, name], value };
      }
    },
    *ofConnections(read) {
      if (connections !== undefined) yield { labels: [], value: read(connections()) };
    },
    *traffic() {
      if (connections === undefined) return;
      const { received, sent } = connections();
      yield { labels: ["received"], value: received };
      yield { labels: ["sent"], value: sent };
    },
    watchCache(figures) {
      cache = figures;
    },
    *ofCache(read) {
      if (cache !== undefined) yield { labels: [], value: read(cache()) };
    },
    *namedOfCache(read) {
      if (cache === undefined) return;
      for (const [name, value] of Object.entries(read(cache()))) yield { labels: [name], value };
    },
    *cacheSeconds() {
      if (cache === undefined) return;
      for (const [answer, { counts, sum }] of Object.entries(cache().durations))
        yield { labels: [answer], counts, sum, exemplars: [] };
    },
  };
}

function* figuresOf(
  backends: ReadonlyMap<string, Pick<Backend, "figures">>,
): Iterable<readonly [database: string, figures: BackendFigures]> {
  for (const [database, { figures }] of backends) if (figures !== undefined) yield [database, figures()];
}

/** The library, which is loaded late. */
export type Library = typeof import("prom-client");

/** A value of a metric in the form that the library writes. */
interface Value {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly exemplar?: HistogramSample["exemplars"][number];
}

/** Everything that the gateway counts. */
export interface Counted {
  readonly tallies: Tallies;
  readonly upkeep: UpkeepTallies;
  readonly cluster: ClusterTallies;
  readonly sources: Sources;
  readonly build: Build;
  /** Default: another thread of the process has them. */
  readonly events?: EventTallies | undefined;
}

/** Version of the gateway, and that of Node. */
export interface Build {
  readonly version: string;
  readonly node: string;
}

/** Adds the gateway's metrics to a registry. They read their values when the registry is read. */
export function registerTallies(
  library: Library,
  registry: Registry,
  { tallies, upkeep, cluster, sources, build, events }: Counted,
): void {
  const scalars: readonly (readonly [MetricDeclaration, () => Iterable<Sample>])[] = [
    [METRICS.buildInfo, () => [{ labels: [build.version, build.node], value: 1 }]],
    [METRICS.backendInfo, () => sources.backendNames()],
    [METRICS.connections, () => sources.ofConnections(({ open }) => open)],
    [METRICS.accepted, () => sources.ofConnections(({ accepted }) => accepted)],
    [METRICS.traffic, () => sources.traffic()],
    [METRICS.limited, () => tallies.limited()],
    [METRICS.credentials, () => tallies.credentials()],
    [METRICS.policyDecisions, () => tallies.policyDecisions()],
    [METRICS.catalogRows, () => sources.ofBackends(({ catalogRows }) => catalogRows)],
    [METRICS.catalogBytes, () => sources.ofBackends(({ catalogBytes }) => catalogBytes)],
    [METRICS.commits, () => sources.ofBackends(({ commits }) => commits.groups)],
    [METRICS.changes, () => sources.ofBackends(({ commits }) => commits.changes)],
    [METRICS.commitRetries, () => sources.ofBackends(({ commits }) => commits.retries)],
    [METRICS.freshnessChecks, () => sources.namedOfBackends(({ freshnessChecks }) => freshnessChecks)],
    [METRICS.openTables, () => sources.ofBackends(({ openTables }) => openTables)],
    [METRICS.jobs, () => sources.namedOfBackends(({ jobs }) => jobs)],
    [METRICS.calls, () => tallies.calls()],
    [METRICS.refusals, () => tallies.refusals()],
    [METRICS.running, () => [{ labels: [], value: tallies.running }]],
    [METRICS.bytes, () => tallies.bytes()],
    [METRICS.decisions, () => tallies.decisions()],
    [METRICS.auditLost, () => [{ labels: [], value: tallies.linesLost("audit") }]],
    [METRICS.accessLost, () => [{ labels: [], value: tallies.linesLost("access") }]],
    [METRICS.sharedRateFailures, () => [{ labels: [], value: tallies.sharedRateFailures }]],
    [METRICS.cacheBlocks, () => sources.namedOfCache(({ blocks }) => blocks)],
    [METRICS.cacheBytes, () => sources.namedOfCache(({ bytes }) => bytes)],
    [METRICS.cacheEvictions, () => sources.namedOfCache(({ evictions }) => evictions)],
    [METRICS.cacheErrors, () => sources.namedOfCache(({ errors }) => errors)],
    [METRICS.cacheForwarded, () => sources.ofCache(({ forwarded }) => forwarded)],
    [METRICS.cacheStored, () => sources.namedOfCache(({ stored }) => stored)],
    [METRICS.upkeepRuns, () => upkeep.runs()],
    [METRICS.upkeepFragments, () => upkeep.sums("fragmentsRemoved")],
    [METRICS.upkeepVersions, () => upkeep.sums("versionsRemoved")],
    [METRICS.upkeepBytes, () => upkeep.sums("bytesRemoved")],
    [METRICS.upkeepWaiting, () => upkeep.waiting()],
    [METRICS.clusterSubmitted, () => cluster.submitted()],
    [METRICS.clusterRunning, () => cluster.running()],
    [METRICS.clusterEnded, () => cluster.ended()],
    ...(events?.samples() ?? []),
  ];
  for (const [{ name, type, help, labels: labelNames, aggregator = "sum" }, samples] of scalars) {
    new library[type === "counter" ? "Counter" : "Gauge"]({
      name,
      help,
      labelNames,
      aggregator,
      registers: [registry],
      collect() {
        this.reset();
        for (const { labels, value } of samples()) this.labels(...labels).inc(value);
      },
    });
  }
  registry.registerMetric(histogramOf(METRICS.seconds, () => tallies.seconds()));
  registry.registerMetric(histogramOf(METRICS.cacheSeconds, () => sources.cacheSeconds()));
  registry.registerMetric(histogramOf(METRICS.upkeepSeconds, () => upkeep.seconds()));
  registry.registerMetric(histogramOf(METRICS.clusterSeconds, () => cluster.seconds()));
}

/** The library's histogram counts every value itself; this one returns what the tallies have counted. */
function histogramOf(declared: MetricDeclaration, samples: () => Iterable<HistogramSample>): Metric {
  const { name, help, aggregator = "sum" } = declared;
  const histogram = {
    name,
    help,
    type: "histogram",
    get: async () => ({
      name,
      help,
      type: "histogram",
      aggregator,
      values: await inSlices(valuesIn(declared, samples())),
    }),
  };
  return histogram as unknown as Metric;
}

function* valuesIn(declared: MetricDeclaration, samples: Iterable<HistogramSample>): Steps<Value[]> {
  const values: Value[] = [];
  for (const sample of samples) {
    values.push(...valuesOf(declared, sample));
    yield;
  }
  return values;
}

function valuesOf(
  { name, labels: names }: MetricDeclaration,
  { labels: texts, counts, sum, exemplars }: HistogramSample,
): Value[] {
  const labels = Object.fromEntries(names.map((label, index) => [label, texts[index] ?? ""]));
  let below = 0;
  const buckets = counts.map((count, index) => {
    below += count;
    const le = SECONDS_BOUNDS[index] ?? "+Inf";
    const exemplar = exemplars[index];
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: below, exemplar };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: below },
  ];
}
