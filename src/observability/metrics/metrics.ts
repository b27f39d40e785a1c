import type { Metric, Registry, RegistryContentType } from "prom-client";
import type { ClusterRuns, NoteDecision, UpkeepMetrics } from "../../namespace/figures.ts";
import type { CallMetrics } from "../../pipeline/records/observe.ts";
import type { CountRefusal } from "../../pipeline/records/refusals.ts";
import { createPace } from "../../runtime/pace.ts";
import { createSharedCheck } from "../../runtime/promises.ts";
import { mediaRanges } from "../../runtime/text.ts";
import {
  createClusterTallies,
  createEventTallies,
  createUpkeepTallies,
  type EventTallies,
} from "./background-tallies.ts";
import { type Build, createSources, type Library, registerTallies, type Sources } from "./collectors.ts";
import {
  aggregate,
  type MetricSnapshot,
  type ProcessSnapshot,
  readWatched,
  type Snapshot,
  watchProcess,
} from "./snapshots.ts";
import { createTallies, type LineLog } from "./tallies.ts";

/** Metrics of a gateway. */
export interface Metrics {
  readonly calls: CallMetrics;
  /** Counts requests that never became a call. */
  readonly refuse: CountRefusal;
  /** Counts lines that a log lacks. */
  loseLines(log: LineLog, lines: number): void;
  /** Counts a request to the server of shared rates that failed. */
  failSharedRate(): void;
  /**
   * Returns the counter of decisions about a database's upstream that belong to no call; without a name, the only
   * database.
   */
  noteFor(database?: string): NoteDecision;
  /** Counts what becomes of events, in a process without workers. */
  readonly events: EventTallies;
  /** Returns the counters of the upkeep of a database's tables; without a name, of the only database. */
  upkeepFor(database?: string): UpkeepMetrics;
  /** Returns the counters of the work of a database's jobs on a cluster; without a name, of the only database. */
  clusterFor(database?: string): ClusterRuns;
  /** Counts a decision of a policy. */
  decidePolicy(isAllowed: boolean): void;
  readonly watchBackend: Sources["watchBackend"];
  readonly forgetBackend: Sources["forgetBackend"];
  readonly watchConnections: Sources["watchConnections"];
  readonly watchCache: Sources["watchCache"];
  readonly page: {
    /**
     * Returns the metrics, in the format that an `Accept` header prefers. Everyone who asks while a page is written
     * shares the next one.
     *
     * @throws Error, while the library cannot be loaded, for example without free file descriptors.
     */
    read(accept?: string): Promise<Page>;
  };
  /** Returns the metrics of this gateway and its thread. */
  snapshot(): Promise<Snapshot>;
}

const UNKNOWN: Build = { version: "", node: "" };

/** Time after which the process is observed without a reader, in milliseconds: the library is slow to load. */
const WATCH_AFTER_MS = 1_000;

/**
 * Creates empty metrics; their page includes the metrics of the process.
 *
 * @param gather returns the metrics of all workers of the process. Default: there is a single worker.
 * @param build Default: the versions are not known.
 */
export function createMetrics(gather?: () => Promise<ProcessSnapshot>, build: Build = UNKNOWN): Metrics {
  const sources = createSources();
  const tallies = createTallies();
  const upkeep = createUpkeepTallies();
  const cluster = createClusterTallies();
  const events = createEventTallies();
  let pages: ReturnType<typeof createPages> | undefined;
  let own: Promise<Registry> | undefined;

  function ownRegistry(): Promise<Registry> {
    own ??= watchProcess().then(({ library }) => {
      const registry = new library.Registry();
      const ownEvents = gather === undefined ? events : undefined;
      registerTallies(library, registry, { tallies, upkeep, cluster, sources, build, events: ownEvents });
      return registry;
    });
    own.catch(() => {
      own = undefined;
    });
    return own;
  }
  async function readOwn(format: PageFormat): Promise<Page> {
    const { library, registry } = await watchProcess();
    const metrics = [...(await ownRegistry()).getMetricsAsArray(), ...registry.getMetricsAsArray()];
    pages ??= createPages(library, metrics);
    return pages(format);
  }
  async function readAll(all: ProcessSnapshot, format: PageFormat): Promise<Page> {
    const { library } = await watchProcess();
    const metrics = [...(await aggregate(library, all.workers)), ...all.process];
    return createPages(library, metrics.map(toReadable))(format);
  }
  const readAs = (format: PageFormat) =>
    createSharedCheck(async () => (gather === undefined ? readOwn(format) : readAll(await gather(), format)));
  const readers = { text: readAs("text"), openmetrics: readAs("openmetrics") };
  setTimeout(() => watchProcess().catch(() => {}), WATCH_AFTER_MS).unref();
  return {
    calls: tallies,
    refuse: tallies.refuse,
    loseLines: tallies.loseLines,
    events,
    failSharedRate: tallies.failSharedRate,
    noteFor: (database) => tallies.noteFor(database),
    upkeepFor: (database = "") => upkeep.of(database),
    clusterFor: (database = "") => cluster.of(database),
    decidePolicy: tallies.decidePolicy,
    watchBackend: sources.watchBackend,
    forgetBackend: sources.forgetBackend,
    watchConnections: sources.watchConnections,
    watchCache: sources.watchCache,
    page: {
      read: (accept) => readers[pageFormat(accept)](),
    },
    async snapshot() {
      const tallied = await (await ownRegistry()).getMetricsAsJSON();
      return [...(tallied as unknown as Snapshot), ...(await readWatched("thread"))];
    },
  };
}

function toReadable(metric: MetricSnapshot): Readable {
  return { name: metric.name, type: metric.type, get: async () => metric };
}

/** Metrics in a text format. */
interface Page {
  readonly contentType: string;
  readonly content: Buffer;
}

/** A metric as a registry reads it; the library's types omit a part of that. */
interface Readable {
  readonly name: string;
  readonly type: unknown;
  get(): Promise<object>;
}

/** A text format of pages. */
type PageFormat = "text" | "openmetrics";

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
function createPages(
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
function pageFormat(accept = ""): PageFormat {
  const ranges = mediaRanges(accept);
  const rank = (types: readonly string[]) =>
    Math.max(0, ...ranges.filter(({ type }) => types.includes(type)).map(({ weight }) => weight));
  const wanted = rank([OPEN_METRICS]);
  return wanted > 0 && wanted >= rank(["text/plain", "text/*"]) ? "openmetrics" : "text";
}
