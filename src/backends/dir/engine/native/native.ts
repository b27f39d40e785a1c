import type { NativeIndex, NativeIndexMakers, NativeIndexParameters, NativeIndexStats } from "./index.ts";
import type { NativeQuery, NativeTakeQuery, NativeTextQueries } from "./query.ts";

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

/** A handle of a table at a version, until it is moved to another. */
export interface NativeTable {
  close(): void;
  /** Returns the schema as an Arrow IPC file without batches. */
  schema(): Promise<Buffer>;
  version(): Promise<number>;
  countRows(filter?: string): Promise<number>;
  add(ipcFile: Buffer, mode: "append" | "overwrite"): Promise<{ version: number }>;
  delete(predicate: string): Promise<{ numDeletedRows: number; version: number }>;
  mergeInsert(on: string[]): NativeMerge;
  /** Adds columns of nulls; only the schema of the Arrow IPC file counts. */
  addColumnsWithSchema(ipcFile: Buffer): Promise<{ version: number }>;
  prewarmIndex(name: string): Promise<void>;
  /** Sets columns to SQL expressions over the old values, in the rows that match the condition. */
  update(
    onlyIf: string | undefined,
    columns: [column: string, expression: string][],
  ): Promise<{ rowsUpdated: number; version: number }>;
  stats(): Promise<NativeStats>;
  /** Returns the indices by name, without those that a table keeps for itself. */
  listIndices(): Promise<NativeIndex[]>;
  /** Returns null for an unknown index. */
  indexStats(name: string): Promise<NativeIndexStats | null>;
  /** Checks the parameters, and then builds in the background. */
  createIndexAsync(
    index: NativeIndexParameters,
    column: string,
    replace: boolean,
    waitSeconds: undefined,
    name: string | undefined,
    train: boolean,
  ): Promise<NativeJob>;
  dropIndex(name: string): Promise<void>;
  /** Adds columns whose values are computed once, all in a single version. */
  addColumns(columns: { name: string; valueSql: string }[]): Promise<{ version: number }>;
  /** Adds columns of nulls that keep their expression; see {@link NativeTable.refreshColumn}. */
  addComputedColumns(columns: { name: string; valueSql: string }[]): Promise<{ version: number }>;
  /** Fills the rows of a computed column that have no value or whose inputs have changed. */
  refreshColumn(column: string): Promise<{ rowsFilled: number; version: number }>;
  alterColumns(alterations: NativeAlteration[]): Promise<{ version: number }>;
  dropColumns(paths: string[]): Promise<{ version: number }>;
  query(): NativeQuery;
  /** Reads rows by their ids, in any order. */
  takeRowIds(ids: bigint[]): NativeTakeQuery;
  /** Reads blobs in the order of the rows; null for a row without a blob. Rejects if a row does not exist. */
  fetchBlobs(column: string, rowIds: bigint[]): Promise<(Buffer | null)[]>;
  /** Opens blobs, like {@link NativeTable.fetchBlobs}, and reads no bytes yet. */
  fetchBlobFiles(column: string, rowIds: bigint[]): Promise<(NativeBlobFile | null)[]>;
  /** Moves this handle to the newest version. */
  checkoutLatest(): Promise<void>;
  /** Moves this handle to a version; only for handles that are not shared. */
  checkout(version: number): Promise<void>;
  /** Returns another handle at the same version. */
  checkoutCurrent(): Promise<NativeTable>;
  /** Makes the content of this handle's version a new version, and moves there. */
  restore(): Promise<void>;
  /** Returns nothing for a table that takes its writes without a log. */
  getLsmWriteSpec(): Promise<NativeLsmWriteSpec | null | undefined>;
  unsetLsmWriteSpec(): Promise<void>;
  branches(): Promise<NativeBranches>;
  tags(): Promise<{ list(): Promise<Record<string, { version: number }>> }>;
  /**
   * Joins small fragments, removes versions from before a time, and updates the indices, in this order. It fails if a
   * tag names a version from before that time.
   *
   * @param beforeMs in milliseconds since 1970. Default: seven days ago
   */
  optimize(beforeMs?: number): Promise<{ compaction: { fragmentsRemoved: number; fragmentsAdded: number } }>;
}

/** A blob that is read in parts. */
export interface NativeBlobFile {
  /** Size in bytes. */
  size(): bigint;
  /** Reads the bytes from `start` up to `end`, which is not included. */
  readRange(start: bigint, end: bigint): Promise<Buffer>;
}

/** The branches of a table. */
export interface NativeBranches {
  list(): Promise<Record<string, unknown>>;
  create(name: string, fromBranch?: string, fromVersion?: number): Promise<NativeTable>;
  /** Returns a handle of a branch, at its newest version or at the given one. */
  checkout(name: string, version?: number): Promise<NativeTable>;
  delete(name: string): Promise<void>;
}

/** Work that runs in the background. */
export interface NativeJob {
  /** Waits for the work; rejects if it failed or was cancelled. */
  wait(): Promise<void>;
  cancel(): Promise<void>;
}

/** Changes to a column; at least one of the three. */
export interface NativeAlteration {
  path: string;
  rename?: string;
  nullable?: boolean;
  /** A type as JSON, in Lance's own names. */
  dataType?: string;
}

/** Statistics of a table. */
export interface NativeStats {
  readonly totalBytes: number;
  readonly numRows: number;
  readonly numIndices: number;
  readonly fragmentStats: {
    readonly numFragments: number;
    readonly numSmallFragments: number;
    readonly lengths: Readonly<Record<"min" | "max" | "mean" | "p25" | "p50" | "p75" | "p99", number>>;
  };
}

/** Each call returns a new builder, except `setTimeout`, which changes this one. */
export interface NativeMerge {
  /** Updates only the matches that satisfy the condition over `source` and `target`, if there is one. */
  whenMatchedUpdateAll(condition?: string): NativeMerge;
  whenNotMatchedInsertAll(): NativeMerge;
  whenNotMatchedBySourceDelete(filter?: string): NativeMerge;
  useIndex(useIndex: boolean): NativeMerge;
  /** Whether the rows go into the log of the table. */
  useLsm(enable: boolean): NativeMerge;
  /** In milliseconds, below 2^32. */
  setTimeout(milliseconds: number): void;
  execute(ipcFile: Buffer): Promise<{
    version: number;
    numInsertedRows: number;
    numUpdatedRows: number;
    numDeletedRows: number;
    numAttempts: number;
    numRows: number;
  }>;
}

/** The used part of the native module. */
export interface NativeModule {
  readonly Connection: {
    newWithNamespace(
      implementation: "rest",
      properties: Record<string, string>,
      options: { session?: unknown; storageOptions?: Record<string, string> },
    ): Promise<NativeConnection>;
  };
  readonly JsFullTextQuery: NativeTextQueries;
  readonly Index: NativeIndexMakers;
  readonly Session: new (indexCacheBytes: bigint, metadataCacheBytes: bigint) => unknown;
}

/** How a table takes writes through a log, in the engine's words. */
export interface NativeLsmWriteSpec {
  /** `bucket`, `identity` or `unsharded`. */
  readonly specType: string;
  /** The sharding column of `bucket` and `identity`. */
  readonly column?: string;
  readonly numBuckets?: number;
  readonly maintainedIndexes?: readonly string[];
  readonly writerConfigDefaults?: Readonly<Record<string, string>>;
}
