import type { Logger } from "pino";
import type { SharedQuantity } from "../../runtime/threads/sharing.ts";
import type { WorkLimitOptions } from "../dir/operations/work-limits.ts";
import type { StorageOptions } from "../dir/stores/storage-options.ts";
import type { UpkeepOptions } from "../dir/upkeep/upkeep.ts";

/** Options of {@link createComposedBackend}. */
export interface ComposedBackendOptions extends WorkLimitOptions {
  readonly log: Logger;
  /** Directories and places in buckets below which tables may be. Default: see {@link createLocationCheck}. */
  readonly allowedLocations?: readonly string[] | undefined;
  /**
   * Options of the storage for tables that come without credentials, by the root of the storage. Default: the storage's own libraries find
   * them.
   */
  readonly storageOptionsOf?: ((root: string) => StorageOptions) | undefined;
  /** Environment of the process, in which the engine may find credentials that it prefers to an upstream's. Default: it has none. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Maximum age of a table's description, in milliseconds. Default: 0, every call asks the upstream. */
  readonly maxStalenessMs?: number | undefined;
  /** Maximum number of unused tables that stay open in a storage. Default: 256. */
  readonly maxOpenTables?: number | undefined;
  /** How long an unused table or storage stays open, in milliseconds. Default: 10 minutes. */
  readonly tableIdleMs?: number | undefined;
  /** Duration of the lease of a job, and pause before a second start, in milliseconds. Default: 30 s and 60 s. */
  readonly jobTimes?: { readonly leaseMs?: number; readonly retryMs?: number } | undefined;
  /** Name of the catalog if several workers of the process serve it. Default: a single thread serves it. */
  readonly shared?: string | undefined;
  /**
   * Upkeep of the tables that the upstream lists to the gateway itself, with the credentials that it sends without a caller. Default: none;
   * between calls, an upstream may know nobody.
   */
  readonly upkeep?: UpkeepOptions | undefined;
  /** How long the longest use of a table takes already, in each worker. Default: there is a single worker. */
  readonly tableUseMs?: SharedQuantity | undefined;
  /** Number of workers of the process. Default: 1. */
  readonly workers?: number | undefined;
}
