import type { Identifier } from "../../namespace/identifier.ts";
import { putNewest } from "../../runtime/collections.ts";
import { joinQuantity, type QuantityPart, UNSHARED } from "../../runtime/threads/sharing.ts";
import { createWorkNotes } from "../dir/batch/work-notes.ts";
import type { Exclusion } from "../dir/concurrency/thread-locks.ts";
import {
  createEngine,
  createReadVersions,
  defaultCacheSizes,
  type ReadVersions,
} from "../dir/engine/engine.ts";
import { keyIn, type ObjectStore } from "../dir/format/storage.ts";
import { createStorageClock } from "../dir/format/storage-clock.ts";
import { TABLE_BASE } from "../dir/format/table-files.ts";
import { withVersionCatalog } from "../dir/format/versions/catalog-store.ts";
import { createEmbeddedEngine } from "../dir/jobs/job-engine.ts";
import { createJobRoom, type JobRoom, MAX_RUNNING_JOBS } from "../dir/jobs/room.ts";
import { createDataOperations, type RowsContext } from "../dir/operations/data-operations.ts";
import { createMergeLocks, type MergeLocks } from "../dir/operations/rows/merge-locks.ts";
import { createMultipartWrites } from "../dir/operations/rows/multipart.ts";
import { workLimitsOf } from "../dir/operations/work-limits.ts";
import { openStore } from "../dir/stores/open-store.ts";
import type { RenewOptions, StorageOptions } from "../dir/stores/storage-options.ts";
import type { TableUpkeepContext } from "../dir/upkeep/optimize.ts";
import { type BoundTables, createBoundTables } from "./bound-tables.ts";
import { createStorageJobs, type StorageJobs } from "./jobs/storage-jobs.ts";
import type { ComposedBackendOptions } from "./options.ts";
import { createBaseCheck } from "./storage-access.ts";
import type { UpstreamVersions } from "./versions/upstream-versions.ts";

/** An opened storage, with the operations on the data of its tables. */
export interface RowStorage extends ReturnType<typeof createDataOperations> {
  readonly context: RowsContext & Pick<TableUpkeepContext, "work">;
  readonly tables: BoundTables;
  readonly jobs: StorageJobs;
  /** See {@link StorageAccess.versions}. */
  readonly versions: UpstreamVersions | undefined;
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
  /** The versions of the table that it is opened for, if the upstream commits them. Default: the storage has them */
  readonly versions?: UpstreamVersions | undefined;
}

/** Parts that all storages of a backend share. */
export interface SharedParts extends Omit<RowsContext, "engine" | "store" | "tables" | "work" | "jobs"> {
  /** Room of the jobs of all storages. */
  readonly room: JobRoom;
  /** The jobs of the storages that are open. */
  readonly storageJobs: Set<StorageJobs>;
  /** Called with a table that has jobs. */
  readonly onJobs: (id: Identifier) => void;
  /** Versions that calls read by their numbers. */
  readonly readVersions: ReadVersions;
  /** Returns the part of a storage in how long the longest use of a table takes already. */
  readonly usesOf: () => QuantityPart;
}

/** Number of storages among which the memory of the engine's caches is divided. */
const SHARES = 8;

/** Creates the parts that all storages of a backend share. */
export function createSharedParts(
  options: ComposedBackendOptions,
  exclusion: Exclusion,
  onJobs: SharedParts["onJobs"],
): SharedParts {
  const { log } = options;
  return {
    ...exclusion,
    log,
    embedded: createEmbeddedEngine(),
    room: createJobRoom(Math.ceil(MAX_RUNNING_JOBS / (options.workers ?? 1))),
    storageJobs: new Set(),
    onJobs,
    reindexed: new Set(),
    readVersions: createReadVersions(),
    usesOf: joinQuantity(options.tableUseMs ?? UNSHARED),
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
  { root, options, isOwn, renew, versions }: StorageAccess,
  shared: SharedParts,
  {
    log,
    allowedLocations,
    maxOpenTables: maxHandles,
    tableIdleMs: idleMs,
    workers = 1,
    jobTimes,
  }: ComposedBackendOptions,
): Promise<RowStorage> {
  const { store: storage, engineOptions } = await openStore(root, options, renew);
  const store = versions === undefined ? storage : withVersionCatalog(storage, versions);
  const storageOptions =
    renew === undefined ? engineOptions : async () => ({ ...engineOptions, ...(await renew()) });
  const sizes = defaultCacheSizes(store, workers * SHARES);
  const { room, storageJobs, onJobs, readVersions, usesOf, ...parts } = shared;
  const useMs = usesOf();
  const handles = { maxHandles, idleMs, useMs, readVersions };
  const engine = createEngine({ log, store, storageOptions, ...handles, ...sizes });
  const tables = createBoundTables(store, isOwn ? createBaseCheck(store, allowedLocations) : undefined);
  const jobs = createStorageJobs({ store, room, log, onJobs, times: jobTimes });
  storageJobs.add(jobs);
  const work = createTableNotes(store);
  const context: RowStorage["context"] = {
    ...parts,
    jobs: jobs.ofRows,
    engine,
    store,
    tables,
    work,
  };
  const mergeLocks = createTableLocks(store);
  const operations = createDataOperations(context, { writes: createMultipartWrites(context), mergeLocks });
  return {
    ...operations,
    context,
    tables,
    jobs,
    versions,
    async close() {
      await jobs.close();
      storageJobs.delete(jobs);
      await mergeLocks.close();
      await engine.close();
      useMs.end();
    },
  };
}

/** Creates the notes of long work on tables, which are in the directories of the tables. Pruning heeds them. */
function createTableNotes(store: ObjectStore): TableUpkeepContext["work"] {
  const of = (location: string) => {
    const base = keyIn(location, TABLE_BASE);
    return createWorkNotes(base, store, createStorageClock(store, base));
  };
  return {
    begin: (location) => of(location).begin(location),
    isActive: (location) => of(location).isActive(location),
    isOtherAtWork: (location) => of(location).isOtherAtWork(location),
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
