import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { isMainThread } from "node:worker_threads";
import { explainMissing } from "../../load-library.ts";
import type {
  NativeIndex,
  NativeIndexMakers,
  NativeIndexParameters,
  NativeIndexStats,
} from "./native-index.ts";
import type { NativeLsmWriteSpec } from "./native-lsm.ts";
import type { NativeQuery, NativeTakeQuery, NativeTextQueries } from "./native-query.ts";
import { keepCallsUnbroken } from "./unbroken-calls.ts";

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

/** Required methods; a missing one would otherwise show in the middle of a request. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  Connection: ["openTable", "createTable", "close"],
  Table: [
    "schema",
    "version",
    "add",
    "delete",
    "mergeInsert",
    "update",
    "stats",
    "addColumnsWithSchema",
    "prewarmIndex",
    "listIndices",
    "query",
    "takeRowIds",
    "fetchBlobs",
    "fetchBlobFiles",
    "checkoutLatest",
    "checkoutCurrent",
    "restore",
    "branches",
    "getLsmWriteSpec",
    "unsetLsmWriteSpec",
    "optimize",
  ],
  Branches: ["list", "create", "checkout", "delete"],
  Query: [
    "execute",
    "outputSchema",
    "onlyIf",
    "selectColumns",
    "nearestTo",
    "explainPlan",
    "analyzePlan",
    "useLsm",
  ],
  VectorQuery: ["column", "distanceType", "postfilter", "distanceRange"],
  NativeMergeInsertBuilder: [
    "whenMatchedUpdateAll",
    "whenNotMatchedInsertAll",
    "setTimeout",
    "useIndex",
    "useLsm",
    "execute",
  ],
  RecordBatchIterator: ["next"],
  TakeQuery: ["selectColumns", "execute"],
  BlobFile: ["size", "readRange"],
  Job: ["wait", "cancel"],
};

/** The package of the engine. */
const ENGINE = "@lancedb/lancedb";
const require = createRequire(import.meta.url);

/**
 * Returns the folder of the engine's modules, without loading them.
 *
 * @throws Error with a single line, if the engine is not installed.
 */
export function findEngine(): string {
  try {
    return dirname(require.resolve(ENGINE));
  } catch (error) {
    throw explainMissing("a directory of tables", ENGINE, error);
  }
}

let loaded: NativeModule | undefined;

/**
 * Loads the native module of the engine, once.
 *
 * @throws Error, if the package is missing, has no build for this system, or has another shape than this code expects.
 */
export function loadNative(): NativeModule {
  loaded ??= loadChecked();
  return loaded;
}

function loadChecked(): NativeModule {
  const native = requireNative(findEngine());
  for (const [name, methods] of Object.entries(EXPECTED)) {
    const missing = methods.find((method) => !(method in (native[name]?.prototype ?? {})));
    if (missing !== undefined) {
      throw new Error(`this version of ${ENGINE} is not supported: ${name}.${missing} is missing`);
    }
  }
  if (!isMainThread) keepCallsUnbroken(Object.keys(EXPECTED).flatMap((name) => native[name] ?? []));
  return native as unknown as NativeModule;
}

function requireNative(folder: string): Record<string, { prototype: object } | undefined> {
  try {
    return require(join(folder, "native.js"));
  } catch (cause) {
    const system = `${process.platform} on ${process.arch}`;
    const text = `${ENGINE} has no native part for ${system} here; install it without --omit=optional`;
    throw new Error(text, { cause });
  }
}
