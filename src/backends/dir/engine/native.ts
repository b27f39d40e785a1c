import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/*
 * The engine's JavaScript wrapper decodes and encodes Arrow; the native classes below it take and give Arrow
 * IPC bytes. They are loaded from the wrapper's own folder, as it loads them itself: the package exports only
 * the wrapper, but reaching through the wrapper's objects would depend on its private fields as much, and
 * would load a second Arrow implementation and the embedding registry at start. `loadNative` fails at once
 * when another version of the package has another shape.
 */

/** A connection; tables are opened by name through the resolver. */
export interface NativeConnection {
  openTable(name: string, namespace: string[]): Promise<NativeTable>;
  /** Creates a table from an Arrow IPC file. */
  createTable(
    name: string,
    ipcFile: Buffer,
    mode: "create" | "overwrite",
    namespace: string[],
  ): Promise<NativeTable>;
  close(): void;
}

/** A handle of a table: a version of it, until it is told to look for another. */
export interface NativeTable {
  close(): void;
  /** The schema as an Arrow IPC file without batches. */
  schema(): Promise<Buffer>;
  version(): Promise<number>;
  countRows(filter?: string): Promise<number>;
  add(ipcFile: Buffer, mode: "append" | "overwrite"): Promise<{ version: number }>;
  delete(predicate: string): Promise<{ numDeletedRows: number; version: number }>;
  mergeInsert(on: string[]): NativeMerge;
  query(): NativeQuery;
  /** Moves this handle to the newest version. */
  checkoutLatest(): Promise<void>;
  /** Moves this handle to a version; for handles that nobody shares. */
  checkout(version: number): Promise<void>;
  /** Another handle at the same version. */
  checkoutCurrent(): Promise<NativeTable>;
  branches(): Promise<NativeBranches>;
  tags(): Promise<{ list(): Promise<Record<string, { version: number }>> }>;
  /** Compacts small fragments and removes versions older than the given time. */
  optimize(olderThanMs?: number): Promise<{ compaction: { fragmentsRemoved: number } }>;
}

/** The branches of a table. */
export interface NativeBranches {
  list(): Promise<Record<string, unknown>>;
  create(name: string, fromBranch?: string, fromVersion?: number): Promise<NativeTable>;
  /** A handle of a branch, at its newest version or at the given one. */
  checkout(name: string, version?: number): Promise<NativeTable>;
  delete(name: string): Promise<void>;
}

export interface NativeMerge {
  whenMatchedUpdateAll(): NativeMerge;
  whenNotMatchedInsertAll(): NativeMerge;
  whenNotMatchedBySourceDelete(filter: string): NativeMerge;
  execute(ipcFile: Buffer): Promise<{
    version: number;
    numInsertedRows: number;
    numUpdatedRows: number;
    numDeletedRows: number;
  }>;
}

/** What a scan and a search share; each call changes the query. */
export interface NativeQueryBase {
  onlyIf(predicate: string): void;
  fullTextSearch(query: { query: string; columns: string[] | null }): void;
  /** Columns by name and SQL expression. */
  select(columns: [string, string][]): void;
  selectColumns(columns: string[]): void;
  limit(limit: number): void;
  offset(offset: number): void;
  fastSearch(): void;
  withRowId(): void;
  orderBy(ordering: { columnName: string; ascending: boolean; nullsFirst: boolean }[]): void;
  /** The schema of the result as an Arrow IPC file without batches. */
  outputSchema(): Promise<Buffer>;
  execute(maxBatchRows?: number): Promise<NativeBatches>;
}

export interface NativeQuery extends NativeQueryBase {
  nearestTo(vector: Float32Array): NativeVectorQuery;
}

export interface NativeVectorQuery extends NativeQueryBase {
  column(column: string): void;
  addQueryVector(vector: Float32Array): void;
  distanceType(type: string): void;
  postfilter(): void;
  refineFactor(factor: number): void;
  nprobes(count: number): void;
  minimumNprobes(count: number): void;
  maximumNprobes(count: number): void;
  distanceRange(lower?: number, upper?: number): void;
  ef(ef: number): void;
  bypassVectorIndex(): void;
}

/** The batches of a result, each an Arrow IPC file of its own; null at the end. */
export interface NativeBatches {
  next(): Promise<Buffer | null>;
}

/** The native module, as far as it is used. */
export interface NativeModule {
  readonly Connection: {
    newWithNamespace(
      implementation: "rest",
      properties: Record<string, string>,
      options: { session?: unknown; storageOptions?: Record<string, string> },
    ): Promise<NativeConnection>;
  };
  readonly Session: new (indexCacheBytes: bigint, metadataCacheBytes: bigint) => unknown;
}

/** The methods that have to be there; a missing one would otherwise show in the middle of a request. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  Connection: ["openTable", "createTable", "close"],
  Table: ["schema", "version", "add", "delete", "mergeInsert", "query", "checkoutLatest", "checkoutCurrent"],
  Query: ["execute", "outputSchema", "onlyIf", "selectColumns", "nearestTo"],
  VectorQuery: ["column", "distanceType", "postfilter", "distanceRange"],
  NativeMergeInsertBuilder: ["whenMatchedUpdateAll", "whenNotMatchedInsertAll", "execute"],
  RecordBatchIterator: ["next"],
};

/**
 * Loads the native module of @lancedb/lancedb.
 *
 * @throws Error, when the package has another shape than this code was written for.
 */
export function loadNative(): NativeModule {
  const require = createRequire(import.meta.url);
  const folder = dirname(require.resolve("@lancedb/lancedb"));
  const native = require(join(folder, "native.js")) as Record<string, { prototype: object } | undefined>;
  for (const [name, methods] of Object.entries(EXPECTED)) {
    const missing = methods.find((method) => !(method in (native[name]?.prototype ?? {})));
    if (missing !== undefined) {
      throw new Error(`this version of @lancedb/lancedb is not supported: ${name}.${missing} is missing`);
    }
  }
  return native as unknown as NativeModule;
}
