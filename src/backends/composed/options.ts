import type { Logger } from "pino";
import type { Turns } from "../dir/concurrency/turns.ts";
import type { ReadAhead } from "../dir/operations/read/read-ahead.ts";
import type { StorageOptions } from "../dir/stores/storage-options.ts";

/** Options of {@link createComposedBackend}. */
export interface ComposedBackendOptions {
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
  /** Largest upload, before and after it is unpacked, in bytes. Default: 1 GiB. */
  readonly maxUploadBytes?: number | undefined;
  /** Size of the parts in which a longer upload is written, in bytes. Default: 32 MiB. */
  readonly uploadPartBytes?: number | undefined;
  /** Memory for open query results, which several backends may share. Default: 128 MiB of its own. */
  readonly readAhead?: ReadAhead | undefined;
  /** The turns of work that may hold a thread of the engine for long. Default: the backend has its own. */
  readonly engineTurns?: Turns | undefined;
  /** Maximum number of unused tables that stay open in a storage. Default: 256. */
  readonly maxOpenTables?: number | undefined;
  /** How long an unused table or storage stays open, in milliseconds. Default: 10 minutes. */
  readonly tableIdleMs?: number | undefined;
  /** Maximum number of entries of a page of a listing. Default: 10,000. */
  readonly maxPageSize?: number | undefined;
  /** Maximum number of words to which the fuzzy conditions of a search may expand together. Default: 500. */
  readonly maxSearchExpansions?: number | undefined;
  /** Name of the catalog if several workers of the process serve it. Default: a single thread serves it. */
  readonly shared?: string | undefined;
  /** Number of workers of the process. Default: 1. */
  readonly workers?: number | undefined;
}
