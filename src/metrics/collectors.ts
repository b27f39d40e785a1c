import type { Metric, Registry } from "prom-client";
import { METRICS, type MetricDeclaration, SECONDS_BOUNDS } from "./declarations.ts";
import type { HistogramSample, Sample, Tallies } from "./tallies.ts";

/** The library, which is loaded late. */
export type Library = typeof import("prom-client");

/** A value of a metric in the form that the library writes. */
interface Value {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly exemplar?: HistogramSample["exemplars"][number];
}

/** Adds the gateway's metrics to a registry. They read their values from the tallies when the registry is read. */
export function registerTallies(library: Library, registry: Registry, tallies: Tallies): void {
  const counters: readonly (readonly [MetricDeclaration, () => Iterable<Sample>])[] = [
    [METRICS.calls, () => tallies.calls()],
    [METRICS.refusals, () => tallies.refusals()],
    [METRICS.bytes, () => tallies.bytes()],
    [METRICS.decisions, () => tallies.decisions()],
  ];
  for (const [{ name, help, labels: labelNames }, samples] of counters) {
    new library.Counter({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset();
        for (const { labels, value } of samples()) this.labels(...labels).inc(value);
      },
    });
  }
  new library.Gauge({
    name: METRICS.running.name,
    help: METRICS.running.help,
    registers: [registry],
    collect() {
      this.set(tallies.running);
    },
  });
  registry.registerMetric(histogramOf(METRICS.seconds, () => tallies.seconds()));
}

/** The library's histogram counts every value itself; this one returns what the tallies have counted. */
function histogramOf({ name, help }: MetricDeclaration, samples: () => Iterable<HistogramSample>): Metric {
  const histogram = {
    name,
    help,
    type: "histogram",
    aggregator: "sum",
    get: async () => ({ name, help, type: "histogram", values: [...samples()].flatMap(valuesOf) }),
  };
  return histogram as unknown as Metric;
}

function valuesOf({ labels: texts, counts, sum, exemplars }: HistogramSample): Value[] {
  const { name, labels: names } = METRICS.seconds;
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
