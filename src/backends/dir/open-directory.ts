import { mkdtemp, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Changes, createChanges } from "../../runtime/threads/changes.ts";
import { type ChangeContext, createJournal } from "./batch/journal.ts";
import { createWorkNotes } from "./batch/work-notes.ts";
import { cacheOfRoot, throughCache } from "./cache/join-cache.ts";
import { openBase } from "./catalog/base/base.ts";
import { createLayout } from "./catalog/base/base-layout.ts";
import { createCatalog } from "./catalog/catalog.ts";
import { createManifestTable } from "./catalog/manifest/manifest-table.ts";
import { PROPERTY_LIMITS } from "./catalog/state/properties-size.ts";
import type { KeyedLocks } from "./concurrency/locks.ts";
import { createStaleness } from "./concurrency/shared-checks.ts";
import { createExclusion } from "./concurrency/thread-locks.ts";
import { createEngine } from "./engine/engine.ts";
import { keyIn, type ObjectStore } from "./format/storage.ts";
import { createStorageClock, MACHINE_CLOCK } from "./format/storage-clock.ts";
import { openFunctionsOf } from "./function-homes.ts";
import { createEmbeddedEngine } from "./jobs/job-engine.ts";
import { createJobs } from "./jobs/jobs.ts";
import { MAX_RUNNING_JOBS } from "./jobs/room.ts";
import { createJobStore, JOBS_DIRECTORY } from "./jobs/store.ts";
import type { DirContext } from "./operations/context.ts";
import { createCachePins } from "./operations/read/pins.ts";
import { createCatalogTables } from "./operations/tables/catalog-tables.ts";
import { workLimitsOf } from "./operations/work-limits.ts";
import type { DirectoryBackendOptions } from "./options.ts";
import { openStore } from "./stores/open-store.ts";

/** An opened directory. */
export interface OpenedDirectory {
  readonly context: DirContext;
  /** Reason why nothing can be written; undefined if it is writable. */
  readonly readOnly: string | undefined;
  close(): Promise<void>;
}

/** Opens the cluster of the options; its modules are loaded only where there is one. */
async function openClusterOf(
  { cluster, log }: DirectoryBackendOptions,
  { store, layout, catalog }: ChangeContext,
  locks: KeyedLocks,
) {
  if (cluster === undefined) return undefined;
  const { openCluster } = await import("./jobs/ray/cluster.ts");
  const directory = keyIn(layout.baseKey, JOBS_DIRECTORY);
  const functions = cluster.functions && openFunctionsOf({ store, layout, catalog }, cluster.functions);
  return openCluster(cluster, { store, directory, functions, locks, log });
}

/**
 * Opens a directory without serving it: it starts no jobs and changes nothing, except that it creates a missing base on a disk unless it
 * only reads.
 *
 * @throws Error with a single line, if the directory cannot be used.
 */
export async function openDirectory(options: DirectoryBackendOptions): Promise<OpenedDirectory> {
  const {
    root,
    tableDirectory,
    log,
    maxOpenTables: maxHandles,
    tableIdleMs: idleMs,
    indexCacheBytes,
    metadataCacheBytes,
    shared,
  } = options;
  await checkTemporaryDirectory();
  const opened = options.storage ?? (await openStore(root, options.storageOptions ?? {}));
  const { clientOptions } = opened;
  const tableChanges = shared?.tableChanges ?? createChanges();
  const store = opened.store.files === undefined ? noteChanges(opened.store, tableChanges) : opened.store;
  const storageOptions = await throughCache(options, opened.engineOptions);
  const base = await openBase({ ...opened, store }, tableDirectory, options.readOnly);
  const layout = createLayout(store, base.key);
  const clock = base.readOnly === undefined ? createStorageClock(store, base.key) : MACHINE_CLOCK;
  const staleness = createStaleness(options.maxStalenessMs ?? 0);
  const engine = createEngine({
    log,
    store,
    storageOptions,
    maxHandles,
    idleMs,
    indexCacheBytes,
    metadataCacheBytes,
    workers: shared?.workers,
    staleness,
    changes: tableChanges,
    useMs: shared?.tableUseMs,
  });
  const exclusion = createExclusion(shared === undefined ? undefined : store.uriOf(layout.baseKey));
  const commits = shared && exclusion.createLocks("commits");
  const catalog = createCatalog(createManifestTable(layout.base, engine, store, clock), log, {
    staleness,
    maxWaiting: options.maxWaitingMutations,
    properties: {
      objectBytes: options.maxPropertiesBytes ?? PROPERTY_LIMITS.objectBytes,
      catalogBytes: options.maxCatalogPropertiesBytes ?? PROPERTY_LIMITS.catalogBytes,
    },
    maintenance: base.readOnly === undefined ? options.maintenance : false,
    newestSeen: shared?.catalogVersion,
    inTurn: commits && ((commit) => commits.withLocks(["next"], commit)),
    workers: shared,
  });
  const maxRunning = shared && Math.ceil(MAX_RUNNING_JOBS / shared.workers);
  const jobs = createJobs({
    store: createJobStore(store, keyIn(base.key, JOBS_DIRECTORY)),
    clock,
    log,
    maxRunning,
  });
  const limits = workLimitsOf(options, shared?.workers);
  const changes: ChangeContext = {
    catalog,
    layout,
    names: options.names ?? "specification",
    engine,
    jobs,
    work: createWorkNotes(base.key, store, clock),
    journal: createJournal(base.key, store, clock),
    store,
    reindexed: new Set(),
    ...exclusion,
    engineTurns: limits.engineTurns,
    clock,
    log,
  };
  const context: DirContext = {
    embedded: createEmbeddedEngine(),
    cluster: await openClusterOf(options, changes, exclusion.createLocks("cluster")),
    ...changes,
    tables: createCatalogTables(changes),
    ...limits,
    pins: createCachePins(options.cachePins),
    cache: cacheOfRoot(options, opened.engineOptions),
    managedVersioning: options.managedVersioning ?? false,
    clientStorageOptions: { ...clientOptions, ...options.clientStorageOptions },
    vendor: options.vendor,
    mostVended: base.readOnly === undefined ? undefined : "read",
    staleness,
  };
  return {
    context,
    readOnly: base.readOnly,
    async close() {
      await jobs.close();
      await context.cluster?.close();
      await catalog.close();
      await engine.close();
    },
  };
}

/**
 * Checks that the engine can make temporary directories. It makes one when it is loaded, and ends the process if it cannot.
 *
 * @throws Error with a single line
 */
async function checkTemporaryDirectory(): Promise<void> {
  const path = tmpdir();
  try {
    await rmdir(await mkdtemp(join(path, "lance-gateway-")));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const text = `the engine needs a directory for temporary files, and ${path} cannot be written (${code}); TMPDIR names another one`;
    throw new Error(text, { cause });
  }
}

/** The directory of a table's versions within a key; what is before it is the table's directory. */
const VERSIONS = "/_versions/";

/** Returns a store that notes each version that is written or deleted through it as a change of its table. */
function noteChanges(store: ObjectStore, changes: Changes): ObjectStore {
  async function noted<T>(keys: readonly string[], work: Promise<T>): Promise<T> {
    try {
      return await work;
    } finally {
      // A failure leaves open whether something has changed.
      for (const key of keys) {
        const end = key.indexOf(VERSIONS);
        if (end > 0) changes.note(store.uriOf(key.slice(0, end)));
      }
    }
  }
  return {
    ...store,
    create: (key, bytes) => noted([key], store.create(key, bytes)),
    put: (key, bytes) => noted([key], store.put(key, bytes)),
    putStream: (key, bytes, signal) => noted([key], store.putStream(key, bytes, signal)),
    putIfAbsent: (key, ...rest) => noted([key], store.putIfAbsent(key, ...rest)),
    replace: (key, bytes, tag) => noted([key], store.replace(key, bytes, tag)),
    delete: (key) => noted([key], store.delete(key)),
    deleteTagged: (key, tag) => noted([key], store.deleteTagged(key, tag)),
    deleteAll: (keys) => noted(keys, store.deleteAll(keys)),
    copy: (from, to) => noted([to], store.copy(from, to)),
    move: (from, to) => noted([to], store.move(from, to)),
  };
}
