import { FAILURES_SHAPE } from "../auth/authenticator.ts";
import type { CacheAccess } from "../backends/dir/cache/join-cache.ts";
import { PAUSES_SHAPE } from "../backends/upstream-identity/refused-fetches.ts";
import type { Configuration } from "../config/configuration.ts";
import type { ServeOptions } from "../config/options/groups.ts";
import type { EventSink } from "../namespace/change-event.ts";
import type { ProcessSnapshot, Snapshot } from "../observability/metrics/snapshots.ts";
import { cellsOfLimits } from "../pipeline/limits/caller-limits.ts";
import type { CellShape, OpenCells } from "../runtime/threads/keyed-cells.ts";
import type { SharedDatabase, SharedQuantity } from "../runtime/threads/sharing.ts";
import { RESETS_SHAPE } from "../server/connections/reset-allowance.ts";

/** The other workers of a process, as the gateway in one of them sees them. */
export interface Workers {
  readonly count: number;
  /** Bytes of the requests of all workers. */
  readonly bufferedBytes: SharedQuantity;
  /** Bytes of the answers of upstreams that all workers collect. */
  readonly answerBytes: SharedQuantity;
  readonly connections: SharedQuantity;
  /** The cache of the process, which the main thread has started. Default: none. */
  readonly cache: CacheAccess | undefined;
  /** Hands events to the main thread, which delivers those of all workers. */
  readonly events: EventSink;
  /** Opens the numbers of a limit that {@link sharedCells} names. */
  readonly openCells: OpenCells;
  /** Returns the shares of a database by its name; the empty text is an only database. */
  database(name: string): SharedDatabase;
  /** Reports whether this worker can answer calls now. */
  announce(ready: boolean): void;
  /** Calls back whenever it changes whether the process can answer calls. */
  onReadiness(listener: (ready: boolean) => void): void;
  /** Returns the metrics of all workers. */
  gatherMetrics(): Promise<ProcessSnapshot>;
  /** Provides the metrics of this worker. */
  provideMetrics(read: () => Promise<Snapshot>): void;
}

/** Returns the shapes of the numbers that the workers of a process share, by name. */
export function sharedCells(options: ServeOptions): Readonly<Record<string, CellShape>> {
  return {
    ...cellsOfLimits(options),
    [RESETS]: RESETS_SHAPE,
    [PAUSES]: PAUSES_SHAPE,
    ...(options.auth.length > 0 && { [FAILURES]: FAILURES_SHAPE }),
  };
}

/** Name of the numbers of addresses that reset too many streams. */
export const RESETS = "resets";

/** Name of the numbers of pauses after failed requests for tokens. */
export const PAUSES = "token pauses";

/** Name of the numbers of failed authentications. */
export const FAILURES = "failures";

/** Limits of a process of which each worker gets an equal part, because what they bound is not shared. */
const DIVIDED = [
  "readAheadBytes",
  "maxOpenTables",
  "indexCacheBytes",
  "metadataCacheBytes",
  "upkeepConcurrency",
  "upstreamMaxCalls",
  "upstreamMaxWaiting",
  "upstreamCacheEntries",
] as const satisfies readonly (keyof ServeOptions)[];

/** Returns the configuration of one worker. */
export function divideConfiguration(
  { options, databases, ...rest }: Configuration,
  workers: number,
): Configuration {
  const byName = [...(databases?.byName ?? [])].map(
    ([name, own]) => [name, divideLimits(own, workers)] as const,
  );
  return {
    ...rest,
    options: divideLimits(options, workers),
    databases: databases && { ...databases, byName: new Map(byName) },
  };
}

function divideLimits(options: ServeOptions, workers: number): ServeOptions {
  const parts = DIVIDED.flatMap((name) => {
    const limit = options[name];
    return limit === undefined ? [] : [[name, Math.ceil(limit / workers)] as const];
  });
  return { ...options, ...Object.fromEntries(parts) };
}
