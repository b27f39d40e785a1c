import type { Logger } from "pino";
import type { NameRule } from "../../namespace/identifier.ts";
import type { SharedDatabase } from "../../runtime/threads/sharing.ts";
import type { BucketCache } from "./cache/join-cache.ts";
import type { ClusterOptions } from "./jobs/ray/cluster.ts";
import type { PinTimes } from "./operations/read/keep-pinned.ts";
import type { AutoRefreshTimes } from "./operations/views/auto-refresh.ts";
import type { WorkLimitOptions } from "./operations/work-limits.ts";
import type { OpenedStore } from "./stores/open-store.ts";
import type { StorageOptions } from "./stores/storage-options.ts";
import type { UpkeepOptions } from "./upkeep/upkeep.ts";
import type { Vendor } from "./vending/vendor.ts";

/** Options of {@link createDirectoryBackend}. */
export interface DirectoryBackendOptions extends WorkLimitOptions {
  /**
   * Directory of the catalog: an absolute path, a path relative to the working directory, or a URI such as
   * `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`.
   */
  readonly root: string;
  /**
   * Options of the storage of a URI, in the words of Lance, for example `aws_endpoint` (docs/storage.md). Only the
   * engine and the client library of the storage get the values. Default: none.
   */
  readonly storageOptions?: StorageOptions | undefined;
  /**
   * Options that descriptions and declarations give to clients, besides the address and the region of the storage, or
   * in their place. Every caller that may describe a table gets them. Default: none.
   */
  readonly clientStorageOptions?: StorageOptions | undefined;
  /** Hands out credentials of an object store to callers. Default: clients bring their own. */
  readonly vendor?: Vendor | undefined;
  /** The cache through which the engine reads a root in an S3 bucket. Default: none; roots elsewhere have none. */
  readonly cache?: BucketCache | undefined;
  /** The storage of the root, if it is open already. Default: the storage that the root names. */
  readonly storage?: OpenedStore | undefined;
  /**
   * Directory below the root that holds the tables; `.` is the root. Default: `data`, or the root of an existing
   * catalog.
   */
  readonly tableDirectory?: string | undefined;
  /** Rule for the names of new objects; existing ones keep theirs. Default: `specification`. */
  readonly names?: NameRule | undefined;
  /** Whether nothing may be written, not even by the upkeep of tables. Default: false. */
  readonly readOnly?: boolean | undefined;
  readonly log: Logger;
  /** Size of the engine's cache of index data, in bytes. Default: {@link defaultCacheSizes} of a worker. */
  readonly indexCacheBytes?: number | undefined;
  /** Size of the engine's cache of file metadata, in bytes. Default: {@link defaultCacheSizes} of a worker. */
  readonly metadataCacheBytes?: number | undefined;
  /** Maximum number of unused tables that stay open. Default: 256. */
  readonly maxOpenTables?: number | undefined;
  /** How long an unused table stays open, in milliseconds. Default: 10 minutes. */
  readonly tableIdleMs?: number | undefined;
  /**
   * Whether clients are told to commit with CreateTableVersion. A table's property `table_version_tracking_enabled`
   * (`true` or anything else) overrides it. Default: false.
   */
  readonly managedVersioning?: boolean | undefined;
  /**
   * Maximum age of the last freshness check with which a read may answer, in milliseconds. Commits of this process
   * are always visible. Default: 0, a read sees every commit that finished before it.
   */
  readonly maxStalenessMs?: number | undefined;
  /** Tables that the cache keeps, by their names as `$` joins them. Default: those with the property. */
  readonly cachePins?: readonly string[] | undefined;
  /**
   * Maximum size of the properties of an object or a transaction, in names and values together, in bytes; larger ones are
   * refused with InvalidInput. Default: 64 KiB.
   */
  readonly maxPropertiesBytes?: number | undefined;
  /**
   * Maximum size of all properties in the catalog, in bytes; changes that add to more are refused with PayloadTooLarge. Default:
   * 64 MiB.
   */
  readonly maxCatalogPropertiesBytes?: number | undefined;
  /** Whether the manifest of the catalog is compacted and pruned in the background. Default: true. */
  readonly maintenance?: boolean | undefined;
  /** How tables are looked after in the background, if the directory can be written. Default: they are not. */
  readonly upkeep?: UpkeepOptions | undefined;
  /** Whether it takes over the jobs of processes that have ended, and the refreshes of views that they have left out. Default: true. */
  readonly takesOver?: boolean | undefined;
  /** The Ray cluster that does heavy work. Default: the process does all work. */
  readonly cluster?: ClusterOptions | undefined;
  /** When views with `auto_refresh` are refreshed. Default: {@link AUTO_REFRESH_TIMES}. */
  readonly autoRefresh?: Partial<AutoRefreshTimes> | undefined;
  /** When pinned tables are looked at. Default: {@link PIN_TIMES}. */
  readonly pinTimes?: PinTimes | undefined;
  /** Disk space that is reserved for drops on a full disk, in bytes. Default: 0, none. */
  readonly diskReserveBytes?: number | undefined;
  /**
   * Maximum number of catalog changes that wait for a commit; further changes are refused with Throttling. Default:
   * 10,000.
   */
  readonly maxWaitingMutations?: number | undefined;
  /** Bounds and facts of the directory that hold for all workers of the process. Default: there is a single worker. */
  readonly shared?: SharedDatabase | undefined;
}
