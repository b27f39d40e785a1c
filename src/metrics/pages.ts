import type { Metric, RegistryContentType } from "prom-client";
import type { Library } from "./collectors.ts";

/** Metrics in a text format. */
export interface Page {
  readonly contentType: string;
  readonly text: string;
}

/** A metric as a registry reads it; the library's types omit a part of that. */
export interface Readable {
  readonly name: string;
  readonly type: unknown;
  get(): Promise<object>;
}

/**
 * Creates the writer of metrics: in OpenMetrics, which has exemplars, for clients that prefer it, otherwise in the
 * text format of Prometheus.
 */
export function createPages(
  { Registry }: Library,
  metrics: readonly unknown[],
): (accept?: string) => Promise<Page> {
  function registryOf<T extends RegistryContentType>(contentType: T) {
    const registry = new (Registry as new (type: T) => InstanceType<typeof Registry>)(contentType);
    for (const metric of metrics) registry.registerMetric(viewOf(metric as Readable));
    return registry;
  }

  const openMetrics = registryOf(Registry.OPENMETRICS_CONTENT_TYPE);
  const plain = registryOf(Registry.PROMETHEUS_CONTENT_TYPE);
  return async (accept) => {
    const registry = prefersOpenMetrics(accept) ? openMetrics : plain;
    return { contentType: registry.contentType, text: await registry.metrics() };
  };
}

/**
 * A registry of OpenMetrics removes `_total` from the names of its counters, which must stay for the other registry.
 */
function viewOf(metric: Readable): Metric {
  const view = {
    name: metric.name,
    type: metric.type,
    get: async () => ({ ...(await metric.get()), name: view.name }),
  };
  return view as unknown as Metric;
}

const OPEN_METRICS = "application/openmetrics-text";

/** Whether an `Accept` header names OpenMetrics and prefers it to the page's other format. */
function prefersOpenMetrics(accept = ""): boolean {
  const rank = (types: readonly string[]) => Math.max(0, ...ranges(accept, types));
  const wanted = rank([OPEN_METRICS]);
  return wanted > 0 && wanted >= rank(["text/plain", "text/*"]);
}

/** Returns the weights of the given media types in an `Accept` header. */
function ranges(accept: string, types: readonly string[]): number[] {
  return accept.split(",").flatMap((range) => {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    if (!types.includes(type)) return [];
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    return [weight === undefined ? 1 : Number(weight) || 0];
  });
}
