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
