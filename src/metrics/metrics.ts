import type { Registry } from "prom-client";
import type { NoteDecision } from "../namespace/decisions.ts";
import type { UpkeepMetrics } from "../namespace/upkeep-runs.ts";
import type { CallMetrics } from "../pipeline/measure.ts";
import type { CountRefusal } from "../pipeline/refusals.ts";
import { type Library, registerTallies } from "./collectors.ts";
import { createPages, type Page } from "./pages.ts";
import { createTallies } from "./tallies.ts";
import { createUpkeepTallies } from "./upkeep-tallies.ts";

/** Metrics of a gateway. */
export interface Metrics {
  readonly calls: CallMetrics;
  /** Counts requests that never became a call. */
  readonly refuse: CountRefusal;
  /**
   * Returns the counter of decisions about a database's upstream that belong to no call; without a name, the only
   * database.
   */
  noteFor(database?: string): NoteDecision;
  /** Returns the counters of the upkeep of a database's tables; without a name, of the only database. */
  upkeepFor(database?: string): UpkeepMetrics;
  readonly page: {
    /**
     * Returns the metrics, in the format that an `Accept` header prefers.
     *
     * @throws Error, while the library cannot be loaded, for example without free file descriptors.
     */
    read(accept?: string): Promise<Page>;
  };
}

/** Time after which the process is observed without a reader, in milliseconds: the library is slow to load. */
const WATCH_AFTER_MS = 1_000;

/** Creates empty metrics; their page includes the metrics of the process. */
export function createMetrics(): Metrics {
  const tallies = createTallies();
  const upkeep = createUpkeepTallies();
  let pages: ReturnType<typeof createPages> | undefined;
  setTimeout(() => watchProcess().catch(() => {}), WATCH_AFTER_MS).unref();
  return {
    calls: tallies,
    refuse: tallies.refuse,
    noteFor: (database) => tallies.noteFor(database),
    upkeepFor: (database = "") => upkeep.of(database),
    page: {
      async read(accept) {
        const { library, registry } = await watchProcess();
        if (pages === undefined) {
          const own = new library.Registry();
          registerTallies(library, own, tallies, upkeep);
          pages = createPages(library, [...own.getMetricsAsArray(), ...registry.getMetricsAsArray()]);
        }
        return await pages(accept);
      },
    },
  };
}

interface Watched {
  readonly library: Library;
  /** The metrics of the process, shared by all gateways in it. */
  readonly registry: Registry;
}

let watched: Promise<Watched> | undefined;

/** Starts to observe the process, once; the library counts from then on. */
function watchProcess(): Promise<Watched> {
  watched ??= import("prom-client").then(
    ({ default: library }) => {
      const registry = new library.Registry();
      library.collectDefaultMetrics({ register: registry });
      return { library, registry };
    },
    (error: unknown) => {
      watched = undefined;
      throw error;
    },
  );
  return watched;
}
