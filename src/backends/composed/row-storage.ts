import { putNewest } from "../../runtime/put-newest.ts";
import type { Exclusion } from "../dir/concurrency/exclusion.ts";
import { defaultCacheSizes } from "../dir/engine/cache-sizes.ts";
import { createEngine } from "../dir/engine/engine.ts";
import type { ObjectStore } from "../dir/format/storage.ts";
import { createStorageClock, MACHINE_CLOCK } from "../dir/format/storage-clock.ts";
import { createEmbeddedEngine } from "../dir/jobs/engine/embedded-engine.ts";
import { createJobs, type Jobs } from "../dir/jobs/jobs.ts";
import { createDataOperations, type RowsContext } from "../dir/operations/data-operations.ts";
import { createMergeLocks, type MergeLocks } from "../dir/operations/rows/merge-locks.ts";
import { createMultipartWrites } from "../dir/operations/rows/multipart.ts";
import { workLimitsOf } from "../dir/operations/work-limits.ts";
import { openStore } from "../dir/stores/open-store.ts";
import type { RenewOptions, StorageOptions } from "../dir/stores/storage-options.ts";
import { createBaseCheck } from "./allowed-locations.ts";
import { type BoundTables, createBoundTables } from "./bound-tables.ts";
import { NO_JOB_RECORDS } from "./no-job-records.ts";
import type { ComposedBackendOptions } from "./options.ts";

/** An opened storage, with the operations on the data of its tables. */
export interface RowStorage extends ReturnType<typeof createDataOperations> {
  readonly context: RowsContext;
  readonly tables: BoundTables;
  close(): Promise<void>;
}

/** A storage, and what opens it. */
export interface StorageAccess {
  /** `/`, or a bucket such as `s3://bucket`. */
  readonly root: string;
  readonly options: StorageOptions;
  /** Whether the gateway opens it with its own rights, and not with credentials of the upstream. */
  readonly isOwn: boolean;
  /** Returns the options of the moment, if their credentials are renewed. Default: they stay */
  readonly renew?: RenewOptions | undefined;
}

/** Parts that all storages of a backend share. */
export interface SharedParts extends Omit<RowsContext, "engine" | "store" | "tables" | "reindexed" | "work"> {
  readonly jobs: Jobs;
}

/** Number of storages among which the memory of the engine's caches is divided. */
const SHARES = 8;

/** Creates the parts that all storages of a backend share. */
export function createSharedParts(options: ComposedBackendOptions, exclusion: Exclusion): SharedParts {
  const { log } = options;
  return {
    ...exclusion,
    log,
    embedded: createEmbeddedEngine(),
    jobs: createJobs({ store: NO_JOB_RECORDS, clock: MACHINE_CLOCK, log }),
    ...workLimitsOf(options, options.workers),
    managedVersioning: false,
    clientStorageOptions: {},
  };
}

/**
 * Opens a storage.
 *
 * @throws Error with a single line for invalid options, or a missing package
 */
export async function openRowStorage(
  { root, options, isOwn, renew }: StorageAccess,
  shared: SharedParts,
  {
    log,
    allowedLocations,
    maxOpenTables: maxHandles,
    tableIdleMs: idleMs,
    workers = 1,
  }: ComposedBackendOptions,
): Promise<RowStorage> {
  const { store, engineOptions } = await openStore(root, options, renew);
  const storageOptions =
    renew === undefined ? engineOptions : async () => ({ ...engineOptions, ...(await renew()) });
  const sizes = defaultCacheSizes(store, workers * SHARES);
  const engine = createEngine({ log, store, storageOptions, maxHandles, idleMs, ...sizes });
  const tables = createBoundTables(store, isOwn ? createBaseCheck(store, allowedLocations) : undefined);
  const context: RowsContext = {
    ...shared,
    engine,
    store,
    tables,
    reindexed: new Set(),
    // Nothing prunes versions here, and no directory of another gateway reads notes outside its own base.
    work: { begin: async () => async () => {}, isActive: async () => false },
  };
  const mergeLocks = createTableLocks(store);
  const operations = createDataOperations(context, { writes: createMultipartWrites(context), mergeLocks });
  return {
    ...operations,
    context,
    tables,
    async close() {
      await mergeLocks.close();
      await engine.close();
    },
  };
}

/** Maximum number of tables whose locks are kept open. */
const MAX_LOCKS = 1_000;

/** Creates locks for merges that are in the directories of the tables, which is all that credentials may open. */
function createTableLocks(store: ObjectStore): MergeLocks {
  const ofTables = new Map<string, MergeLocks>();
  return {
    async withLock(location, signal, work) {
      const locks =
        ofTables.get(location) ?? createMergeLocks(location, store, createStorageClock(store, location));
      void putNewest(ofTables, location, locks, MAX_LOCKS)?.close();
      return locks.withLock("table", signal, work);
    },
    async close() {
      await Promise.all([...ofTables.values()].map((locks) => locks.close()));
    },
  };
}
