import type { TreeNode } from "./tree/tree.ts";

/** The table that a statement names. */
export interface SqlTableName {
  /** Database that the name begins with. Default: the database of the call. */
  readonly database: string | undefined;
  /** Names that lead from the root to the table, its own name last. */
  readonly path: readonly string[];
  /** Version that the statement asks for, by `AT (VERSION => 3)`. Default: the newest. */
  readonly version: bigint | undefined;
  /** Branch that the statement asks for, by `AT (VERSION => 'name')`. Default: the main branch. */
  readonly branch: string | undefined;
  /** Search whose rows stand in place of those of the table. Default: all rows. */
  readonly search?: SqlSearch | undefined;
}

/** A search in a table: for a vector, for words, or for both, by fused ranks. */
export interface SqlSearch {
  /** Number of rows that it finds at most. */
  readonly rows: number;
  /** Column of its result that tells how well a row fits. */
  readonly score: string;
  /** Whether the conditions of the statement for its rows hold before it searches. Otherwise it may find rows that they leave out. */
  readonly isPrefilter: boolean;
  /** Condition for its rows, in the language of QueryTable. */
  readonly filter: string | undefined;
  readonly vector:
    | {
        readonly column: string;
        readonly values: readonly number[];
        readonly usesIndex: boolean;
        /** Number of partitions of the index that are searched. */
        readonly probes: number | undefined;
        readonly refineFactor: number | undefined;
        /** Default: that of the index, or `l2`. */
        readonly distanceType: string | undefined;
      }
    | undefined;
  readonly words: { readonly column: string; readonly query: string } | undefined;
}

/** A table that is open, with the version that all scans of it read. */
export interface SqlTable extends SqlTableName {
  /** Columns, as an Arrow IPC stream without rows. */
  readonly schema: Uint8Array;
  /** Number of rows, for the plan of the statement. Default: it is not known. */
  readonly rows: number | undefined;
}

/** A view that a statement names. */
export interface SqlView extends SqlTableName {
  readonly query: string;
  /** Namespace of tables that the query names without one. */
  readonly namespacePath: readonly string[];
}

/** The query of a view, with the path of the view. */
export type ViewQuery = Pick<SqlView, "path" | "query" | "namespacePath">;

/** Rows and columns that a scan reads. */
export interface SqlScan {
  /** At least one column, each once. */
  readonly columns: readonly string[];
  /** Condition for the rows, in the language of QueryTable. A scan may return more rows: the statement has the whole condition. */
  readonly filter?: string | undefined;
  /** Number of rows that are enough. A scan may return more. */
  readonly limit?: number | undefined;
}

/** The tables of a catalog as the caller of a statement may read them. */
export interface SqlTables {
  /**
   * Resolves a name at this moment, and authorizes a read of the table or a description of the view.
   *
   * @throws LanceError of the name or of the caller, as a query of the table throws it
   */
  open(name: SqlTableName, signal: AbortSignal): Promise<SqlTable | SqlView>;
  /** Reads rows of an open table, as an Arrow IPC stream that is cut anywhere, and authorizes the read. */
  scan(table: SqlTable, what: SqlScan, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /**
   * Authorizes a read of an open table, and returns what tells its rows from those of every other state of the table, and of another table that
   * takes its name and its version. Default: nothing does, and no rows are kept.
   *
   * @returns undefined if nothing tells
   */
  stateOf?(table: SqlTable, signal: AbortSignal): Promise<string | undefined>;
  /** Yields the names of the tables and views in a namespace that the caller may see, in the order of listings. Default: they are not listed. */
  listTables?(namespace: readonly string[], signal: AbortSignal): AsyncIterable<string>;
  /** Describes a materialized view. Default: there are none. */
  describeMaterializedView?(path: readonly string[], signal: AbortSignal): Promise<MaterializedView>;
  /** Yields the names of the materialized views in a namespace that the caller may see. Default: there are none. */
  listMaterializedViews?(namespace: readonly string[], signal: AbortSignal): AsyncIterable<string>;
}

/** Description of a materialized view. */
export interface MaterializedView {
  readonly query: string;
  readonly autoRefresh: boolean;
  /** Version of the table that the view shows. Default: the view was never filled. */
  readonly sourceVersion?: bigint | undefined;
  /** Version of the view. Default: it is not known. */
  readonly version?: bigint | undefined;
}

/** Outcome of a CREATE whose name exists: an error, another object in its place, or nothing. */
export type Existing = "refuse" | "replace" | "keep";

/** Changes of rows, in the language of UpdateTable. */
export interface RowChanges {
  readonly predicate: string;
  readonly assignments: readonly { readonly column: string; readonly expression: string }[];
}

/**
 * Changes to a catalog, each as the caller of a statement may make it. Rows are an Arrow IPC stream, of which either all or none are written. Each
 * throws the errors of its operation.
 */
export interface SqlWrites {
  /** Database that names may begin with. Default: none. */
  readonly database: string | undefined;
  create(
    path: readonly string[],
    existing: Existing,
    rows: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void>;
  insert(path: readonly string[], rows: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>;
  /** Returns the number of changed rows. */
  update(path: readonly string[], changes: RowChanges, signal: AbortSignal): Promise<bigint>;
  /** Returns the number of deleted rows; undefined if the catalog does not tell. */
  delete(path: readonly string[], predicate: string, signal: AbortSignal): Promise<bigint | undefined>;
  drop(path: readonly string[], signal: AbortSignal): Promise<void>;
  createView(view: NewView, signal: AbortSignal): Promise<void>;
  dropView(path: readonly string[], signal: AbortSignal): Promise<void>;
  /** Creates a materialized view, waits until it is filled, and returns the number of its rows. */
  createMaterializedView(view: NewMaterializedView, signal: AbortSignal): Promise<bigint>;
  /** Waits until the view is up to date, and returns the number of written rows. @param isFull whether all rows are replaced */
  refreshMaterializedView(path: readonly string[], isFull: boolean, signal: AbortSignal): Promise<bigint>;
  dropMaterializedView(path: readonly string[], signal: AbortSignal): Promise<void>;
}

/** A materialized view that a statement creates. */
export interface NewMaterializedView {
  readonly path: readonly string[];
  /** Query in the language of CreateMaterializedView, which names its table from the root on. */
  readonly query: string;
  /** Whether the view is refreshed when its table changes. */
  readonly autoRefresh: boolean;
}

/** A view that a statement creates. */
export interface NewView extends ViewQuery {
  /** Columns of the result of its query: one encapsulated IPC message, a schema. */
  readonly schema: Uint8Array;
  /** Whether a view of the name is replaced. */
  readonly replaces: boolean;
}

/** The caller of a statement, and what it may read. */
export interface SqlCall {
  readonly tables: SqlTables;
  /** Makes the changes of statements that write. Default: they are refused. */
  readonly writes?: SqlWrites | undefined;
  /** Namespace of names that name none. Default: the root. */
  readonly namespacePath?: readonly string[] | undefined;
  /** Key of the caller, for the statements that one caller may run at a time. Default: the callers without a key are one. */
  readonly caller?: string | undefined;
  /** Changes the statement before it is checked. Default: it stays as it is. */
  readonly reshape?: Reshape | undefined;
  /** Ends the call. */
  readonly signal: AbortSignal;
}

/** A statement that runs in place of another one, and is checked as that one would be. */
export interface Reshape {
  /** Statement in place of the other one. */
  readonly text: string;
  /** Puts parts of the other statement's tree, which is not checked, into the tree of this one. */
  apply(own: TreeNode, statement: TreeNode): void;
  /** Whether the outcome depends on both texts alone, so that it can be kept. */
  readonly isPure: boolean;
}

/** A checked statement. Its tables are those that it named when it was prepared, at their versions then; each run authorizes its reads. */
export interface SqlStatement {
  /** Columns of the result, as far as the statement tells them without its parameters: one encapsulated IPC message, a schema. */
  readonly schema: Uint8Array;
  /** Whether it reads or changes tables. */
  readonly readsTables: boolean;
  /** Whether it changes something when it runs. Its result is the number of rows that it has changed, in a column `Count`. */
  readonly isUpdate: boolean;
  /** Parameters in order, with the types as far as the statement tells them: one encapsulated IPC message, a schema. */
  readonly parameters: Uint8Array;
  /**
   * Runs the statement and yields an IPC stream, one encapsulated message at a time: the schema, which may differ from {@link schema} if the
   * parameters decide about types, and then record batches. Results have no dictionaries, and the end-of-stream marker is left out. Leaving the
   * loop ends the statement.
   *
   * @param parameters an IPC stream with a single row, a column for each parameter in order. Default: none.
   * @param tables read the rows. Default: those by which the statement was prepared.
   * @param writes make its changes. Default: those by which the statement was prepared.
   * @throws LanceError InvalidInput for a failure of the statement or its parameters, PayloadTooLarge past a bound, Throttling if too many
   *   statements wait
   */
  run(
    parameters: Uint8Array | undefined,
    signal: AbortSignal,
    tables?: SqlTables,
    writes?: SqlWrites,
  ): AsyncIterable<Uint8Array>;
  /**
   * Yields the plan as {@link run} yields rows: a row with `explain_key`, and the plan in `explain_value`. No table is read.
   *
   * @param format default: JSON
   * @param parameters as for {@link run}
   */
  explain(signal: AbortSignal, format?: PlanFormat, parameters?: Uint8Array): AsyncIterable<Uint8Array>;
}

/** Form of a plan: text for people, or JSON. */
export type PlanFormat = "TEXT" | "JSON";

/** Runs SQL over the tables of catalogs. */
export interface SqlEngine {
  /**
   * Parses and checks a statement, and resolves its tables.
   *
   * @throws LanceError InvalidInput for a statement that does not parse or bind, with the position; Unsupported for a statement, a function or a type
   *   outside of the allowed ones, and without the package of the engine; every error of a table
   */
  prepare(statement: string, call: SqlCall): Promise<SqlStatement>;
  /**
   * Checks the query of a view as a statement that reads the view would be checked, and returns the columns of its result: one encapsulated IPC
   * message, a schema.
   *
   * @throws LanceError as {@link prepare}
   */
  planView(view: ViewQuery, call: SqlCall): Promise<Uint8Array>;
  /** Ends the running statements. */
  close(): Promise<void>;
}

/** Bounds of SQL. */
export interface SqlOptions {
  /** Memory of a statement's engine, in MiB. It has no temporary files, so a statement that needs more is refused. Default: 512. */
  readonly memoryMib?: number | undefined;
  /** Memory of the tables that an engine keeps between statements, in MiB, besides that of a statement; 0 keeps none. Default: 256. */
  readonly keptMib?: number | undefined;
  /** Threads of a statement. Default: 2. */
  readonly threads?: number | undefined;
  /** How long a statement may take, its result included, in milliseconds; 0 for no limit. Default: 300,000. */
  readonly timeoutMs?: number | undefined;
  /** Maximum number of rows of a result. Default: 10,000,000. */
  readonly maxRows?: number | undefined;
  /** Statements that run at a time. Default: 2. */
  readonly maxRunning?: number | undefined;
  /** Statements of a caller that run at a time; more of them wait. Default: 1. */
  readonly maxCallerRunning?: number | undefined;
  /** Statements that wait at a time; the next one is refused. Default: 64. */
  readonly maxWaiting?: number | undefined;
}

/** Longest time of a timer. */
const LONGEST_MS = 2 ** 31 - 1;

/** Bounds with their defaults. */
export type SqlBounds = { readonly [K in keyof Required<SqlOptions>]: number };

export function boundsOf(options: SqlOptions): SqlBounds {
  const {
    memoryMib = 512,
    keptMib = 256,
    threads = 2,
    timeoutMs = 300_000,
    maxRows = 10_000_000,
    maxRunning = 2,
    maxCallerRunning = 1,
    maxWaiting = 64,
  } = options;
  return {
    ...{ memoryMib, keptMib, threads, maxRows, maxRunning, maxCallerRunning, maxWaiting },
    timeoutMs: timeoutMs === 0 ? LONGEST_MS : timeoutMs,
  };
}
