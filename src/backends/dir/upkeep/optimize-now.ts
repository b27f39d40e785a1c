import { setTimeout as sleep } from "node:timers/promises";
import { isLanceError } from "../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import { backoffMs } from "../../../runtime/clocks.ts";
import { walkAllTables } from "../catalog/walk.ts";
import type { DataContext } from "../data/data-context.ts";
import type { FoundTable, WorkPlace } from "../data/table-source.ts";
import { compactElsewhere } from "../operations/jobs/cluster-compaction.ts";
import { findTable } from "../operations/tables/find-table.ts";
import { duringWork } from "../operations/tables/long-work.ts";
import { datasetOf } from "../operations/tables/open-data.ts";
import type { FencedLease } from "../ownership/fenced-lease.ts";
import { UPKEEP_TIMES } from "./activity.ts";
import { inspectTable, isJoinable, type TableFacts } from "./inspect.ts";
import type { UpkeepLeases } from "./lease.ts";
import { type Compacted, optimizeTable, type TableUpkeepContext, type UpkeepContext } from "./optimize.ts";
import { DEFAULT_POLICY, policyOf, type UpkeepPolicy } from "./policy.ts";
import { type PruneFigures, pruneTable } from "./prune-table.ts";

/** Options of {@link optimizeTables}. */
export interface OptimizeOptions {
  /** Default: all tables whose properties allow it. */
  readonly tables?: readonly Identifier[] | undefined;
  /** Age from which on versions are pruned, in milliseconds. Default: that of each table's policy. */
  readonly retentionMs?: number | undefined;
  /** Whether to report what there is to do, without writing. Default: false. */
  readonly dryRun?: boolean;
  /** Whether a gateway of the catalog has its cluster join fragments. Default: false. */
  readonly onCluster?: boolean;
  /** Longest wait for a table on which another process works, in milliseconds. */
  readonly waitMs: number;
  readonly leases: UpkeepLeases;
}

/** The state of a table that upkeep changes. */
export type OptimizedState = Pick<TableFacts, "version" | "fragments" | "deletedRows" | "unindexedRows">;

/** Result for a table. */
export type Optimized = { readonly table: Identifier } & (
  | ({
      /** `optimized`: it has changed, or would change; `unchanged`: there was nothing to do. */
      readonly outcome: "optimized" | "unchanged";
      readonly before: OptimizedState;
      /** Absent in a dry run. */
      readonly after?: OptimizedState;
      readonly milliseconds: number;
    } & PruneFigures)
  | {
      /** `skipped`: it has no data, or its property says off. */
      readonly outcome: "skipped" | "failed";
      readonly reason: string;
    }
);

/** Interval between attempts to get the lease of a table, in milliseconds. */
const POLL_MS = 250;

/** The policy of tables without properties: the options of the gateways on the root may keep every version. */
const POLICY: UpkeepPolicy = { ...DEFAULT_POLICY, history: "all" };

/** Number of attempts to compact a table beside its writers, and the pause after the first, in milliseconds. */
const ATTEMPTS = 8;
const PAUSE_MS = 200;

const NO_SIGNAL = new AbortController().signal;

/** Looks after tables once, the first to the last, with the leases of the upkeep in the background. */
export async function* optimizeTables(
  context: UpkeepContext,
  options: OptimizeOptions,
): AsyncGenerator<Optimized> {
  for await (const table of options.tables ?? walkAllTables(context)) {
    yield { table, ...(await orReason(() => optimizeNow(context, options, table))) };
  }
}

/** Returns the result of work on a table, or why there is none. */
export async function orReason(work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await work();
  } catch (error) {
    const isEmpty = EMPTY.some((name) => isLanceError(error, name));
    const reason = isEmpty ? "it has no data" : error instanceof Error ? error.message : String(error);
    return { outcome: isEmpty ? "skipped" : "failed", reason };
  }
}

/** Errors of a table that is only declared. */
const EMPTY = ["TableVersionNotFound"] as const;

/** Result for a table that is not named. */
export type Outcome = Optimized extends infer T ? (T extends unknown ? Omit<T, "table"> : never) : never;

/** The command frees at once what it has replaced, and does not know what others read. */
const TIMES = { ...UPKEEP_TIMES, replacedMs: 0 };

async function optimizeNow(
  context: UpkeepContext,
  options: OptimizeOptions,
  id: Identifier,
): Promise<Outcome> {
  const table = await findTable(context, await context.catalog.read(), id);
  if (table === undefined) return { outcome: "failed", reason: `table ${joinIdentifier(id)} does not exist` };
  const handOver = (place: WorkPlace) => compactElsewhere(context, place, options.waitMs);
  const isNamed = options.tables !== undefined;
  return optimizeFound(
    context,
    { ...options, isNamed, ...(options.onCluster && { handOver }) },
    { ...table, id },
  );
}

/** Options of {@link optimizeFound}. */
export interface OptimizeFoundOptions extends Omit<OptimizeOptions, "onCluster" | "tables"> {
  /** Whether it was asked for by its name, so that its properties do not exempt it. Default: false. */
  readonly isNamed?: boolean;
  /** Has another process join fragments. Default: this one does it. */
  readonly handOver?: (place: WorkPlace) => Promise<unknown>;
}

/** Looks after a table once. */
export async function optimizeFound(
  context: TableUpkeepContext,
  options: OptimizeFoundOptions,
  table: FoundTable,
): Promise<Outcome> {
  const { retentionMs, dryRun = false } = options;
  const own = policyOf(POLICY, table.properties);
  if (!own.enabled && options.isNamed !== true) {
    return { outcome: "skipped", reason: "its property lance-gateway.upkeep is off" };
  }
  const policy = retentionMs === undefined ? own : { ...own, retentionMs };
  const started = performance.now();
  const result = dryRun
    ? await plan(context, table, policy)
    : await withLease(options, table, (lease) => work(context, options, table, policy, lease));
  return { ...result, milliseconds: Math.round(performance.now() - started) };
}

async function plan(context: TableUpkeepContext, table: FoundTable, policy: UpkeepPolicy) {
  const before = await inspectTable(datasetOf(context, table));
  const { figures } = await pruneTable(context, table, policy, TIMES, new Map(), NO_SIGNAL, true);
  const isWork = isJoinable(before) || before.unindexedRows > 0 || figures.versionsRemoved > 0;
  return { outcome: outcomeOf(isWork), before, ...figures };
}

async function work(
  context: TableUpkeepContext,
  { handOver }: OptimizeFoundOptions,
  table: FoundTable,
  policy: UpkeepPolicy,
  lease: FencedLease,
) {
  const { id, location } = table;
  const dataset = datasetOf(context, table);
  const before = await inspectTable(dataset);
  const isHandedOver = handOver !== undefined && isJoinable(before);
  if (isHandedOver) await handOver({ id, location });
  return duringWork(context, { id, location }, async () => {
    await optimizeFully(context, table, isHandedOver ? await inspectTable(dataset) : before);
    if (!(await lease.isHeld())) throw new Error("another process has taken the table over");
    const { figures } = await pruneTable(context, table, policy, TIMES, new Map(), NO_SIGNAL);
    const after = await inspectTable(dataset);
    const isChanged = after.version !== before.version || figures.versionsRemoved > 0;
    return { outcome: outcomeOf(isChanged), before, after, ...figures };
  });
}

const outcomeOf = (isChanged: boolean) => (isChanged ? ("optimized" as const) : ("unchanged" as const));

/**
 * Maximum number of compactions of a table: the engine joins no fragments of which an index covers only some, and a
 * compaction brings the indices up to date at its end.
 */
const ROUNDS = 3;

async function optimizeFully(
  context: DataContext,
  table: FoundTable,
  { version }: TableFacts,
): Promise<void> {
  let last = version;
  for (let round = 1; round <= ROUNDS; round++) {
    const compacted = await optimizePatiently(context, table);
    if (compacted.version === last) return;
    last = compacted.version;
  }
}

/** Compacts a table again while it loses to writers. */
async function optimizePatiently(context: DataContext, table: FoundTable): Promise<Compacted> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await optimizeTable(context, table, "all", NO_SIGNAL);
    } catch (error) {
      if (!isLanceError(error, "ConcurrentModification") || attempt === ATTEMPTS) throw error;
      await sleep(backoffMs(attempt - 1, PAUSE_MS));
    }
  }
}

async function withLease<T>(
  { leases, waitMs }: OptimizeFoundOptions,
  { location }: FoundTable,
  held: (lease: FencedLease) => Promise<T>,
): Promise<T> {
  const until = performance.now() + waitMs;
  let lease = await leases.acquire(location);
  while (lease === undefined) {
    if (performance.now() >= until) throw new Error("another process is working on the table");
    await sleep(POLL_MS);
    lease = await leases.acquire(location);
  }
  try {
    return await held(lease);
  } finally {
    await lease.release();
  }
}
