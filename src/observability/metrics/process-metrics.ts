import type { Registry } from "prom-client";
import type { Snapshot } from "./aggregate.ts";
import type { Library } from "./collectors.ts";

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
