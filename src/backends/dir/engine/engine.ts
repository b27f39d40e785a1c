import type { Logger } from "pino";
import { type Changes, createChanges } from "../../../runtime/threads/changes.ts";
import type { SharedQuantity } from "../../../runtime/threads/sharing.ts";
import type { Staleness } from "../concurrency/shared-checks.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import type { ObjectStore } from "../format/storage.ts";
import { branchNotFound } from "../format/versions/refs/refs.ts";
import { engineCall } from "./failures/errors.ts";
import { createHandles, type Handles } from "./handles.ts";
import { loadNative } from "./native/load.ts";
import type { NativeTable } from "./native/native.ts";
import { createResolver, type EngineOptionsSource, tableName } from "./resolver.ts";
import { createWatcher } from "./watch.ts";
import { createDeletionFiles } from "./workarounds/deletion-lengths/deletion-files.ts";

/** Options of {@link createEngine}. */
export interface EngineOptions {
  readonly log: Logger;
  /** Storage of the datasets. Default: the local disk. */
  readonly store?: ObjectStore | undefined;
  /** Options with which the engine opens that storage, in its own words; they contain secrets. Default: none. */
  readonly storageOptions?: EngineOptionsSource | undefined;
  /** Maximum number of unused tables that stay open. Default: 256. */
  readonly maxHandles?: number | undefined;
  /** How long an unused table stays open, in milliseconds. Default: 10 minutes. */
  readonly idleMs?: number | undefined;
  /** Size of the engine's cache of index data, in bytes. Default: {@link defaultCacheSizes}. */
  readonly indexCacheBytes?: number | undefined;
  /** Size of the engine's cache of file metadata, in bytes. Default: {@link defaultCacheSizes}. */
  readonly metadataCacheBytes?: number | undefined;
  /** Number of workers of the process, among which the default sizes are divided. Default: 1. */
  readonly workers?: number | undefined;
  /** How old the versions of tables may be that reads see. Default: reads see the newest ones. */
  readonly staleness?: Staleness | undefined;
  /** Changes of tables by this process. Default: there is a single worker. */
  readonly changes?: Changes | undefined;
  /** How long the longest use of a table takes already, in each worker. Default: there is a single worker. */
  readonly useMs?: SharedQuantity | undefined;
  /** Versions that calls read by their numbers, of all engines that open the same tables. Default: those of this engine. */
  readonly readVersions?: ReadVersions | undefined;
}

/** The Lance engine: datasets by their location. */
export interface Engine extends Pick<Handles, "acquire" | "acquireEarly" | "open" | "forget" | "longestUse"> {
  /**
   * Writes a new dataset, or with `overwrite` a new version that replaces everything.
   *
   * @param file an Arrow IPC file
   * @returns the version that was written
   * @throws LanceError TableAlreadyExists, in mode `create` if the location has a dataset.
   */
  create(location: string, file: Buffer, mode: "create" | "overwrite"): Promise<number>;
  /** Versions that calls read by their numbers, and that therefore must not be pruned. */
  readonly readVersions: ReadVersions;
  /** Opens another handle of a table, at a version; the caller closes it. */
  atVersion(table: NativeTable, version: number): Promise<NativeTable>;
  /**
   * Opens a handle of a branch, at its newest version or at the given one; the caller closes it.
   *
   * @throws LanceError TableBranchNotFound
   */
  onBranch(table: NativeTable, branch: string, version?: number): Promise<NativeTable>;
  /** Loads the engine now instead of with the first call that needs it. */
  warmUp(): Promise<void>;
  close(): Promise<void>;
}

/** Creates the engine; its native part is loaded on first use, so that the process starts quickly. */
export function createEngine(options: EngineOptions): Engine {
  const {
    log,
    store = createLocalStore(),
    storageOptions = {},
    maxHandles = 256,
    idleMs = 600_000,
  } = options;
  const changes = options.changes ?? createChanges();
  const sizes = defaultCacheSizes(store, options.workers);
  const { indexCacheBytes = sizes.indexCacheBytes, metadataCacheBytes = sizes.metadataCacheBytes } = options;
  let connecting: ReturnType<typeof connect> | undefined;

  async function connect() {
    const started = performance.now();
    const native = loadNative();
    const { versions } = store;
    const managed = versions && { location: store.uriOf(versions.root), versions };
    const resolver = await createResolver(storageOptions, managed);
    const session = new native.Session(BigInt(indexCacheBytes), BigInt(metadataCacheBytes));
    const connection = await native.Connection.newWithNamespace("rest", resolver.properties, { session });
    log.debug({ ms: Math.round(performance.now() - started) }, "engine loaded");
    return { connection, resolver };
  }
  function connected() {
    connecting ??= connect().catch((error) => {
      connecting = undefined;
      throw error;
    });
    return connecting;
  }
  const handles = createHandles(
    {
      max: maxHandles,
      idleMs,
      watch: createWatcher(store),
      deletionsOf: (location) => createDeletionFiles({ store, root: store.keyOf(location) }),
      // On a disk, a look takes less time than a comparison of times is worth.
      staleness: store.files === undefined ? options.staleness : undefined,
      changes,
      useMs: options.useMs,
    },
    async (location) => {
      const { connection } = await connected();
      return connection.openTable(tableName(location), []);
    },
  );
  return {
    acquire: handles.acquire,
    acquireEarly: handles.acquireEarly,
    get open() {
      return handles.open;
    },
    forget: handles.forget,
    longestUse: handles.longestUse,
    readVersions: options.readVersions ?? createReadVersions(),
    create(location, file, mode) {
      return engineCall(async () => {
        const { connection } = await connected();
        try {
          const table = await connection.createTable(tableName(location), file, mode, []);
          try {
            return await table.version();
          } finally {
            table.close();
          }
        } finally {
          changes.note(location);
        }
      });
    },
    atVersion(table, version) {
      return engineCall(async () => {
        const copy = await table.checkoutCurrent();
        try {
          await copy.checkout(version);
          return copy;
        } catch (error) {
          copy.close();
          throw error;
        }
      });
    },
    onBranch(table, branch, version) {
      return engineCall(async () => {
        const branches = await table.branches();
        if (!Object.hasOwn(await branches.list(), branch)) {
          throw branchNotFound(branch);
        }
        return branches.checkout(branch, version);
      });
    },
    async warmUp() {
      await connected();
    },
    async close() {
      handles.closeAll();
      const { connection, resolver } = (await connecting?.catch(() => undefined)) ?? {};
      try {
        connection?.close();
      } catch (error) {
        // A call that was cancelled may still open a table. The connection ends with the process then.
        log.debug({ err: error }, "the engine's connection is still in use");
      }
      await resolver?.close();
    },
  };
}

const MIB = 1024 * 1024;

/** Sizes of the engine's caches, in bytes. */
export interface CacheSizes {
  /** Of parts of indices. */
  readonly indexCacheBytes: number;
  /** Of the metadata of files. */
  readonly metadataCacheBytes: number;
}

/**
 * Returns the default sizes of the engine's caches for a worker, in equal parts of what the process may have.
 *
 * On a disk they are small, because the operating system keeps the files in memory anyway; from a bucket, each part
 * that is read again costs a round trip (docs/adr/0028).
 *
 * @param workers number of workers. Default: 1
 */
export function defaultCacheSizes(store: Pick<ObjectStore, "files">, workers = 1): CacheSizes {
  const [index, metadata] = store.files === undefined ? [256, 128] : [32, 16];
  return {
    indexCacheBytes: Math.ceil((index * MIB) / workers),
    metadataCacheBytes: Math.ceil((metadata * MIB) / workers),
  };
}

/** Versions of tables that running calls of this thread read by their numbers. */
export interface ReadVersions {
  /** Notes that a version is about to be read; the returned function ends that. */
  begin(location: string, version: number): () => void;
  has(location: string, version: number): boolean;
}

/** Creates an empty record. */
export function createReadVersions(): ReadVersions {
  const readers = new Map<string, number>();
  const keyOf = (location: string, version: number) => `${version} ${location}`;

  return {
    begin(location, version) {
      const key = keyOf(location, version);
      readers.set(key, (readers.get(key) ?? 0) + 1);
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        const left = (readers.get(key) as number) - 1;
        if (left === 0) readers.delete(key);
        else readers.set(key, left);
      };
    },
    has: (location, version) => readers.has(keyOf(location, version)),
  };
}
