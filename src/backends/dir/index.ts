import type { Logger } from "pino";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { settleAbandoned } from "./batch/resolve.ts";
import { createDiskReserve } from "./disk-reserve.ts";
import { openDirectory } from "./open-directory.ts";
import { createBackfillOperations } from "./operations/columns/backfill.ts";
import { createColumnOperations } from "./operations/columns/columns.ts";
import { createMetadataOperations } from "./operations/columns/schema-metadata.ts";
import { createIndexOperations } from "./operations/indices/indices.ts";
import { createLanceDbExtensions } from "./operations/lancedb.ts";
import { createListOperations } from "./operations/namespaces/list.ts";
import { createNamespaceOperations } from "./operations/namespaces/namespaces.ts";
import { createReadOperations } from "./operations/read/read.ts";
import type { ReadAhead } from "./operations/read/read-ahead.ts";
import { onlyReads } from "./operations/read-only.ts";
import { createChangeOperations } from "./operations/rows/change.ts";
import { createMergeOperations } from "./operations/rows/merge.ts";
import { createMultipartWrites } from "./operations/rows/multipart.ts";
import { sweepStaging } from "./operations/rows/staged-write.ts";
import { createWriteOperations } from "./operations/rows/write.ts";
import { createDeclareOperations } from "./operations/tables/declare.ts";
import { createDescribeOperations } from "./operations/tables/describe.ts";
import { createDropOperations } from "./operations/tables/drop.ts";
import { createRenameOperations } from "./operations/tables/rename.ts";
import { createStatsOperations } from "./operations/tables/stats.ts";
import { createBranchOperations } from "./operations/versions/branches.ts";
import { createManagedVersionOperations } from "./operations/versions/managed-versions.ts";
import { createTagOperations } from "./operations/versions/tags.ts";
import { createTransactionOperations } from "./operations/versions/transactions.ts";
import { createVersionOperations } from "./operations/versions/versions.ts";
import { createViewOperations } from "./operations/views/views.ts";
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

/** The backend of a directory. */
export interface DirectoryBackend extends Backend {
  /** Why the catalog is served for reading only; undefined when it is not. */
  readonly readOnly: string | undefined;
}

/**
 * Creates the backend that serves a directory of Lance tables, in the public directory catalog format.
 *
 * The engine is loaded in the background. Where the directory cannot be written, or its storage has no conditional
 * writes, every operation that writes is refused.
 *
 * @throws Error with one clear line, when the directory cannot be used.
 */
export async function createDirectoryBackend(options: DirectoryBackendOptions): Promise<DirectoryBackend> {
  const { context, readOnly, close } = await openDirectory(options);
  const { catalog, engine, jobs, log } = context;
  const writes = createMultipartWrites(context);
  const reserve = createDiskReserve({
    store: context.store,
    baseKey: context.layout.baseKey,
    log,
    bytes: readOnly === undefined ? (options.diskReserveBytes ?? 0) : 0,
  });
  if (readOnly === undefined) {
    await sweepStaging(context);
    await settleAbandoned(context);
  }
  engine.warmUp().catch((error) => log.error({ err: error }, "the engine cannot be loaded"));
  const writeOperations = createWriteOperations(context, writes);
  const namespaces = createNamespaceOperations(context);
  const drops = createDropOperations(context);
  const operations: Backend["operations"] = {
    ...namespaces,
    dropNamespace: (request, call) => reserve.spend(() => namespaces.dropNamespace(request, call)),
    ...createListOperations(context),
    ...createDeclareOperations(context),
    ...createDescribeOperations(context),
    ...drops,
    dropTable: (request, call) => reserve.spend(() => drops.dropTable(request, call)),
    ...writeOperations,
    ...createReadOperations(context),
    ...createMergeOperations(context),
    ...createChangeOperations(context),
    ...createStatsOperations(context),
    ...createVersionOperations(context),
    ...createTagOperations(context),
    ...createBranchOperations(context),
    ...createManagedVersionOperations(context),
    ...createTransactionOperations(context),
    ...createRenameOperations(context),
    ...createColumnOperations(context),
    ...createMetadataOperations(context),
    ...createIndexOperations(context),
    ...createBackfillOperations(context),
    ...createViewOperations(context, writeOperations.createTable),
  };
  // The operations have said how jobs are done.
  if (readOnly === undefined) jobs.start();
  return {
    name: "dir",
    readOnly,
    ...onlyReads(readOnly, { operations, extensions: createLanceDbExtensions(context, writes) }),
    mayBecomeUnready: true,
    async ready() {
      try {
        await engine.warmUp();
        await catalog.read();
        return true;
      } catch (error) {
        log.warn({ err: error }, "the catalog cannot be read");
        return false;
      }
    },
    async close() {
      await reserve.close();
      await close();
    },
  };
}
