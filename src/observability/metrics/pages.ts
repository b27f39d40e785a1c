import type { Metric, RegistryContentType } from "prom-client";
import { createPace } from "../../runtime/pace.ts";
import { mediaRanges } from "../../runtime/text/media-ranges.ts";
import type { Library } from "./collectors.ts";

/** Metrics in a text format. */
export interface Page {
  readonly contentType: string;
  readonly content: Buffer;
}

/** A metric as a registry reads it; the library's types omit a part of that. */
export interface Readable {
  readonly name: string;
  readonly type: unknown;
  get(): Promise<object>;
}

/** A text format of pages. */
export type PageFormat = "text" | "openmetrics";

/** Number of series that the library writes at a time, which takes about a millisecond. */
const SERIES_AT_ONCE = 500;

/** Number of lines before the series of a metric: its help and its type. */
const HEAD_LINES = 2;

/** Separator and end of a format. */
interface Format {
  readonly contentType: RegistryContentType;
  readonly between: string;
  readonly end: string;
}

/**
 * Creates the writer of metrics in OpenMetrics, which has exemplars, or in the text format of Prometheus. Thousands of
 * series are written in turns with other work: anyone may ask for them.
 */
export function createPages(
  { Registry }: Library,
  metrics: readonly unknown[],
): (format: PageFormat) => Promise<Page> {
  const openMetrics = { contentType: Registry.OPENMETRICS_CONTENT_TYPE, between: "\n", end: "\n# EOF\n" };
  const plain = { contentType: Registry.PROMETHEUS_CONTENT_TYPE, between: "\n\n", end: "\n" };

  /** Returns the text of a metric with some of its values, without the end of the format. */
  async function textOf(view: Metric, { contentType, end }: Format): Promise<string> {
    const registry = new (Registry as new (type: RegistryContentType) => InstanceType<typeof Registry>)(
      contentType,
    );
    registry.registerMetric(view);
    return (await registry.metrics()).slice(0, -end.length);
  }
  async function* textsOf(metric: Readable, format: Format): AsyncIterable<string> {
    const read = (await metric.get()) as Values;
    yield textOf(viewOf(metric, read, 0), format);
    for (let at = SERIES_AT_ONCE; at < read.values.length; at += SERIES_AT_ONCE) {
      const text = await textOf(viewOf(metric, read, at), format);
      yield text.split("\n").slice(HEAD_LINES).join("\n");
    }
  }
  return async (name) => {
    const format: Format = name === "openmetrics" ? openMetrics : plain;
    const pace = createPace();
    const texts: string[] = [];
    for (const metric of metrics) {
      const parts: string[] = [];
      for await (const text of textsOf(metric as Readable, format)) {
        parts.push(text);
        await pace.pauseIfDue();
      }
      texts.push(parts.join("\n"));
    }
    const content = Buffer.from(texts.join(format.between) + format.end);
    return { contentType: format.contentType, content };
  };
}

/** Result of reading a metric. */
interface Values {
  readonly values: readonly unknown[];
}

/**
 * Returns a metric with some of its values. A registry of OpenMetrics removes `_total` from the name of a counter, which
 * must stay for other readers.
 */
function viewOf({ name, type }: Readable, read: Values, at: number): Metric {
  const view = {
    ...{ name, type },
    get: async () => ({ ...read, name: view.name, values: read.values.slice(at, at + SERIES_AT_ONCE) }),
  };
  return view as unknown as Metric;
}

const OPEN_METRICS = "application/openmetrics-text";

/** Returns the format for an `Accept` header: OpenMetrics if it names that and prefers no other format of text. */
export function pageFormat(accept = ""): PageFormat {
  const ranges = mediaRanges(accept);
  const rank = (types: readonly string[]) =>
    Math.max(0, ...ranges.filter(({ type }) => types.includes(type)).map(({ weight }) => weight));
  const wanted = rank([OPEN_METRICS]);
  return wanted > 0 && wanted >= rank(["text/plain", "text/*"]) ? "openmetrics" : "text";
}
