import type { Logger } from "pino";
import type { ReadAhead } from "./operations/read/read-ahead.ts";
import type { OpenedStore } from "./stores/open-store.ts";
import type { StorageOptions } from "./stores/storage-options.ts";

/** Options of {@link createDirectoryBackend}. */
export interface DirectoryBackendOptions {
  /**
   * The directory of the catalog: an absolute path, one relative to the working directory, or a URI such as
   * `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`.
   */
  readonly root: string;
  /**
   * How the storage of a URI is reached, in the words of Lance, for example `aws_endpoint` (docs/storage.md). The
   * values are handed to the engine and to the client library of the storage, and to nobody else. Default: none.
   */
  readonly storageOptions?: StorageOptions | undefined;
  /** The storage of the root when it is open already. Default: what the root names. */
  readonly storage?: OpenedStore | undefined;
  /** The directory below the root that holds the tables; `.` is the root. Default: `data`, or the root of an existing catalog. */
  readonly tableDirectory?: string | undefined;
  readonly log: Logger;
  /** The largest upload, before and after it is unpacked, in bytes. Default: 1 GiB. */
  readonly maxUploadBytes?: number | undefined;
  /** The bytes of an upload that are written at once; a longer one is written in parts. Default: 32 MiB. */
  readonly uploadPartBytes?: number | undefined;
  /** The memory for query results that are open, which several backends may share. Default: 128 MiB of its own. */
  readonly readAhead?: ReadAhead | undefined;
  /** The engine's cache of index data, in bytes. Default: 256 MiB. */
  readonly indexCacheBytes?: number | undefined;
  /** The engine's cache of file metadata, in bytes. Default: 128 MiB. */
  readonly metadataCacheBytes?: number | undefined;
  /** The most tables that stay open while nobody uses them. Default: 256. */
  readonly maxOpenTables?: number | undefined;
  /** How long a table stays open while nobody uses it, in milliseconds. Default: 10 minutes. */
  readonly tableIdleMs?: number | undefined;
  /** The most entries of a page of a listing. Default: 10,000. */
  readonly maxPageSize?: number | undefined;
  /**
   * Whether clients are told to commit with CreateTableVersion. A table's property
   * `table_version_tracking_enabled` (`true` or anything else) comes before it. Default: false.
   */
  readonly managedVersioning?: boolean | undefined;
  /**
   * How old the last look at the storage may be for a read to answer without another one, in milliseconds. What
   * this process committed is always seen. Default: 0, a read sees every commit that finished before it.
   */
  readonly maxStalenessMs?: number | undefined;
  /**
   * Whether the manifest of the catalog is kept small in the background: files joined, old versions pruned.
   * Default: true.
   */
  readonly maintenance?: boolean | undefined;
  /** The space that is kept on a disk for drops when it is full, in bytes. Default: 0, none. */
  readonly diskReserveBytes?: number | undefined;
  /** The most changes of the catalog that wait to be committed; more are refused with Throttling. Default: 10,000. */
  readonly maxWaitingMutations?: number | undefined;
}
