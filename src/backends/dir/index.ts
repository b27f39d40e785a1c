import type { Logger } from "pino";
import { createPartBufferPool } from "../../arrow/part-buffer.ts";
import type { Backend } from "../../namespace/port.ts";
import { createJournal } from "./batch/journal.ts";
import { settleAbandoned } from "./batch/settle.ts";
import { createCatalog } from "./catalog/catalog.ts";
import { createLayout, openBase } from "./catalog/layout.ts";
import { createManifestTable } from "./catalog/manifest.ts";
import { createEngine } from "./engine/engine.ts";
import { createLocalStore } from "./format/local-store.ts";
import { createJobs } from "./jobs/jobs.ts";
import { createJobStore, JOBS_DIRECTORY } from "./jobs/store.ts";
import { createBackfillOperations } from "./operations/backfill.ts";
import { createBranchOperations } from "./operations/branches.ts";
import { createChangeOperations } from "./operations/change.ts";
import { createColumnOperations } from "./operations/columns.ts";
import type { DirContext } from "./operations/context.ts";
import { createDeclareOperations } from "./operations/declare.ts";
import { createDescribeOperations } from "./operations/describe.ts";
import { createDropOperations } from "./operations/drop.ts";
import { createIndexOperations } from "./operations/indices.ts";
import { createLanceDbExtensions } from "./operations/lancedb.ts";
import { createListOperations } from "./operations/list.ts";
import { createManagedVersionOperations } from "./operations/managed-versions.ts";
import { createMergeOperations } from "./operations/merge.ts";
import { createMetadataOperations } from "./operations/metadata.ts";
import { createMultipartWrites } from "./operations/multipart.ts";
import { createNamespaceOperations } from "./operations/namespaces.ts";
import { createReadOperations } from "./operations/read.ts";
import { createRenameOperations } from "./operations/rename.ts";
import { sweepStaging } from "./operations/staged-write.ts";
import { createStatsOperations } from "./operations/stats.ts";
import { createTagOperations } from "./operations/tags.ts";
import { createTransactionOperations } from "./operations/transactions.ts";
import { createVersionOperations } from "./operations/versions.ts";
import { createViewOperations } from "./operations/views/views.ts";
import { createWriteOperations } from "./operations/write.ts";

/** Options of {@link createDirectoryBackend}. */
export interface DirectoryBackendOptions {
  /** The directory of the catalog, an absolute path or one relative to the working directory. */
  readonly root: string;
  /** The directory below the root that holds the tables; `.` is the root. Default: `data`, or the root of an existing catalog. */
  readonly tableDirectory?: string | undefined;
  readonly log: Logger;
  /** The largest upload, before and after it is unpacked, in bytes. Default: 1 GiB. */
  readonly maxUploadBytes?: number | undefined;
  /** The bytes of an upload that are written at once; a longer one is written in parts. Default: 32 MiB. */
  readonly uploadPartBytes?: number | undefined;
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
}

/**
 * Creates the backend that serves a directory of Lance tables, in the public directory catalog format.
 *
 * The engine is loaded in the background.
 *
 * @throws Error with one clear line, when the directory cannot be used.
 */
export async function createDirectoryBackend(options: DirectoryBackendOptions): Promise<Backend> {
  const {
    root,
    tableDirectory,
    log,
    maxOpenTables: maxHandles,
    tableIdleMs: idleMs,
    indexCacheBytes,
    metadataCacheBytes,
    maxUploadBytes = 1024 ** 3,
  } = options;
  const base = await openBase(root, tableDirectory);
  const engine = createEngine({ log, maxHandles, idleMs, indexCacheBytes, metadataCacheBytes });
  const store = createLocalStore();
  const catalog = createCatalog(createManifestTable(base, engine, store), log);
  const jobs = createJobs({ store: createJobStore(store, `${base.slice(1)}/${JOBS_DIRECTORY}`), log });
  const context: DirContext = {
    catalog,
    layout: createLayout(base),
    engine,
    jobs,
    journal: createJournal(base, store),
    store,
    log,
    maxUploadBytes,
    uploadPartBytes: options.uploadPartBytes ?? 32 * 1024 ** 2,
    uploadBuffers: createPartBufferPool(maxUploadBytes),
    maxPageSize: options.maxPageSize ?? 10_000,
    managedVersioning: options.managedVersioning ?? false,
  };
  const writes = createMultipartWrites(context);
  await sweepStaging(base);
  await settleAbandoned(context);
  engine.warmUp().catch((error) => log.error({ err: error }, "the engine cannot be loaded"));
  const writeOperations = createWriteOperations(context, writes);
  const operations = {
    ...createNamespaceOperations(context),
    ...createListOperations(context),
    ...createDeclareOperations(context),
    ...createDescribeOperations(context),
    ...createDropOperations(context),
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
  jobs.start();
  return {
    name: "dir",
    operations,
    extensions: createLanceDbExtensions(context, writes),
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
      await jobs.close();
      await catalog.close();
      await engine.close();
    },
  };
}
