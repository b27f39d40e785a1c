import type { Registry } from "prom-client";
import type { ClusterRuns, NoteDecision, UpkeepMetrics } from "../../namespace/figures.ts";
import type { CallMetrics } from "../../pipeline/records/call-metrics.ts";
import type { CountRefusal } from "../../pipeline/records/refusals.ts";
import { createSharedCheck } from "../../runtime/shared-check.ts";
import { aggregate, type MetricSnapshot, type ProcessSnapshot, type Snapshot } from "./aggregate.ts";
import {
  createClusterTallies,
  createEventTallies,
  createUpkeepTallies,
  type EventTallies,
} from "./background-tallies.ts";
import { type Build, registerTallies } from "./collectors.ts";
import { createPages, type Page, type PageFormat, pageFormat, type Readable } from "./pages.ts";
import { readWatched, watchProcess } from "./process-metrics.ts";
import { createSources, type Sources } from "./sources.ts";
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
