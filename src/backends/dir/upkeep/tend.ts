import type { Logger } from "pino";
import { isLanceError } from "../../../namespace/errors.ts";
import { joinIdentifier } from "../../../namespace/identifier.ts";
import { untilAborted } from "../concurrency/wait.ts";
import type { FoundTable } from "../data/table-source.ts";
import { latestVersion } from "../format/versions/version-files.ts";
import { duringWork } from "../operations/tables/long-work.ts";
import { datasetOf } from "../operations/tables/open-data.ts";
import type { FencedLease } from "../ownership/fenced-lease.ts";
import type { ActiveTable, Tended, UpkeepTimes } from "./activity.ts";
import {
  inspectTable,
  isCheap,
  isJoinable,
  memoryOf,
  type Need,
  needOf,
  type TableFacts,
  type Work,
} from "./inspect.ts";
import { type Compacted, optimizeTable, type TableUpkeepContext, type UpkeepFigures } from "./optimize.ts";
import { policyOf, type UpkeepPolicy } from "./policy.ts";
import { hasSurplus, NOT_PRUNED, pruneTable } from "./prune-table.ts";
import type { TableCluster, TendedTable, UpkeepTables } from "./upkeep-tables.ts";

/** Everything that looking after a table takes. */
export interface TendContext {
  readonly tables: Pick<UpkeepTables, "readAhead" | "withTable">;
  /** The policy of tables without properties. */
  readonly policy: UpkeepPolicy;
  readonly times: UpkeepTimes;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Gets the figures of a run, and its duration in milliseconds. */
  readonly onRun: (figures: UpkeepFigures, milliseconds: number) => void;
  /** Called for a table that needs work and cannot be worked on now. */
  readonly onMiss: (reason: "busy" | "leased") => void;
}

const NOTHING: Tended = { restMs: 0, againMs: undefined };
const GONE: Tended = { ...NOTHING, isGone: true };

/** Time until the next try while another process has the lease, in milliseconds. */
const LEASED_MS = 30_000;

/** Longest wait for running changes of a table, and longest wait of later ones, in milliseconds. */
const DRAIN_MS = 1_000;
const HOLD_MS = 2_000;

/** Part of the retention after which versions that have become too old are looked for again. */
const PRUNES_PER_RETENTION = 20;
const MAX_PRUNE_PAUSE_MS = 60 * 60_000;

/** Part of the age of surplus versions, after which they are looked for again. */
const PRUNES_PER_AGE = 4;

/**
 * Inspects a table, and does the work that it needs.
 *
 * @param leaveTurn lets other tables be worked on, called before a wait for a cluster
 */
export async function tend(
  tending: TendContext,
  active: ActiveTable,
  leaveTurn: () => void,
): Promise<Tended> {
  const { tables, log, signal } = tending;
  const work = async (found: TendedTable): Promise<Tended> => {
    const policy = policyOf(tending.policy, found.table.properties, (reason) =>
      log.warn({ table: joinIdentifier(active.id) }, `a property of upkeep is ignored: ${reason}`),
    );
    if (!policy.enabled) return NOTHING;
    try {
      return await tendFound(tending, active, found, policy, leaveTurn);
    } catch (error) {
      // A table that is only declared, was dropped meanwhile, needs newer software, or has a damaged version.
      if (SKIPPED.some((name) => isLanceError(error, name))) return NOTHING;
      throw error;
    }
  };
  return (await tables.withTable(active.id, work, signal)) ?? GONE;
}

const SKIPPED = [
  "TableNotFound",
  "TableVersionNotFound",
  "InvalidTableState",
  "Unsupported",
  "DataLoss",
] as const;

async function tendFound(
  tending: TendContext,
  active: ActiveTable,
  found: TendedTable,
  policy: UpkeepPolicy,
  leaveTurn: () => void,
): Promise<Tended> {
  const { tables, times, onMiss } = tending;
  const { context, table, leases, cluster } = found;
  if (performance.now() - active.lastCommit < times.commitQuietMs) {
    await leases.noteOptimized(table.location, false);
  }
  const missed = (reason: "busy" | "leased", againMs: number): Tended => {
    onMiss(reason);
    return { restMs: 0, againMs };
  };
  const facts = await inspectTable(datasetOf(context, table));
  const isFinished = facts.version === active.finishedAt;
  const takesFragments = cluster?.takes(facts.rows) === true;
  const need = isFinished ? undefined : needOf(facts, policy, takesFragments);
  const prunes = wantsPrune(active, facts, policy, times);
  if (need?.work !== "all") active.areIndicesNext = false;
  const isForCluster =
    takesFragments && !active.areIndicesNext && facts.version !== active.compactedAt && isJoinable(facts);
  const restedAt = isForCluster ? active.handedOverAt + times.clusterRestMs : 0;
  const waitMs = need && waitFor(need, active, times, restedAt);
  const work = need === undefined || (waitMs ?? 0) > 0 ? undefined : workOf(need, active);
  if (work === undefined && !prunes) return { restMs: 0, againMs: waitMs };
  // Long changes would lose to a compaction, and start again.
  if ((await context.gate.isBusy(table.path)) || (await found.isBusy?.()))
    return missed("busy", times.busyMs);
  const onCluster = work !== undefined && isForCluster;
  const place = tables.readAhead.tryEnter(work === undefined || onCluster ? 0 : memoryOf(facts));
  if (place === undefined) return missed("busy", times.busyMs);
  try {
    const lease = await leases.acquire(table.location);
    if (lease === undefined) return missed("leased", LEASED_MS);
    try {
      if (onCluster) {
        if (await cluster.isJoining()) return missed("leased", LEASED_MS);
        leaveTurn();
        return await untilAborted(handOver(tending, active, found, cluster, work), tending.signal);
      }
      const plan = { active, found, policy, facts, work, waitMs, prunes };
      const place = { id: active.id, location: table.location };
      const done = duringWork(context, place, () => carryOut(tending, plan, lease));
      return await untilAborted(done, tending.signal);
    } finally {
      if (tending.signal.aborted) lease.abandon();
      else await lease.release();
    }
  } finally {
    place.leave();
  }
}

/**
 * Returns the time until a table may be optimized, in milliseconds.
 *
 * Clients that commit themselves, such as engines, compute a change for minutes and would lose to a compaction meanwhile.
 */
function waitFor({ when }: Need, active: ActiveTable, times: UpkeepTimes, restedAt: number): number {
  const quietAt = when === "now" ? 0 : active.lastWrite + times.quietMs;
  return Math.max(quietAt, restedAt, active.lastCommit + times.commitQuietMs) - performance.now();
}

function workOf({ work }: Need, { joinsNothing }: ActiveTable): Work {
  return joinsNothing ? "all" : work;
}

/** Work on a table, as its inspection has decided. */
interface Plan {
  readonly active: ActiveTable;
  readonly found: TendedTable;
  readonly policy: UpkeepPolicy;
  readonly facts: TableFacts;
  /** The engine's work; undefined for none. */
  readonly work: Work | undefined;
  /** Time until the table may be optimized, in milliseconds; undefined without a need. */
  readonly waitMs: number | undefined;
  readonly prunes: boolean;
}

async function carryOut(
  { times, signal, onRun }: TendContext,
  { active, found: { context, table, leases }, policy, facts, work, waitMs, prunes }: Plan,
  lease: FencedLease,
): Promise<Tended> {
  const started = performance.now();
  const compaction =
    work === undefined
      ? { fragmentsRemoved: 0, fragmentsAdded: 0, version: facts.version }
      : await holdingWriters(context, table, work, active.failures > 0 && isCheap(facts), signal);
  const optimizeMs = performance.now() - started;
  const isChanged = compaction.version !== facts.version;
  if (isChanged) await leases.noteOptimized(table.location, true);
  if (work === "all" && !isChanged) active.finishedAt = facts.version;
  if (work !== undefined) {
    active.areIndicesNext = false;
    active.joinsNothing = work === "join" && compaction.fragmentsRemoved === 0;
  }
  const { figures, hasYoung, hasReplaced } =
    prunes && (await lease.isHeld())
      ? await pruneTable(context, table, policy, times, active.known, signal)
      : NOT_PRUNED;
  if (prunes) {
    active.prunedAt = performance.now();
    active.leftReplaced = hasReplaced;
  }
  onRun({ ...compaction, ...figures }, performance.now() - started);
  const again = [
    work === undefined ? waitMs : undefined,
    work !== undefined && (isChanged || active.joinsNothing) ? times.settleMs : undefined,
    hasYoung ? times.surplusAgeMs : undefined,
    hasReplaced ? times.replacedMs : undefined,
  ].filter((ms) => ms !== undefined);
  return {
    restMs: optimizeMs * (isCheap(facts) ? times.cheapRest : times.rest),
    againMs: again.length === 0 ? undefined : Math.min(...again),
  };
}

/** Has the cluster join the fragments of a table. Work on its indices follows in this process, even if rows arrive meanwhile. */
async function handOver(
  { times, onRun }: TendContext,
  active: ActiveTable,
  { context, table, leases }: TendedTable,
  cluster: TableCluster,
  work: Work,
): Promise<Tended> {
  const started = performance.now();
  // The job may outlive this process; the next one sees by the note that its commit is not a client's.
  await leases.noteOptimized(table.location, true);
  const joined = await cluster.join();
  const milliseconds = performance.now() - started;
  if (joined.fragmentsRemoved > 0) await leases.noteOptimized(table.location, true);
  active.handedOverAt = performance.now();
  active.areIndicesNext = work === "all";
  active.compactedAt = (await latestVersion(datasetOf(context, table)))?.version;
  onRun({ ...joined, versionsRemoved: 0, filesRemoved: 0, bytesRemoved: 0 }, milliseconds);
  return { restMs: 0, againMs: times.settleMs };
}

/** Optimizes a table; if it lost to a writer before, later writers wait for it for a moment. */
async function holdingWriters(
  context: TableUpkeepContext,
  table: FoundTable,
  work: Work,
  holds: boolean,
  signal: AbortSignal,
): Promise<Compacted> {
  if (!holds) return optimizeTable(context, table, work, signal);
  const open = await context.gate.close(table.path, DRAIN_MS);
  const timer = setTimeout(open, HOLD_MS);
  try {
    return await optimizeTable(context, table, work, signal);
  } finally {
    clearTimeout(timer);
    open();
  }
}

function wantsPrune(
  { prunedAt, leftReplaced }: ActiveTable,
  facts: TableFacts,
  policy: UpkeepPolicy,
  times: UpkeepTimes,
): boolean {
  if (facts.versions < 2) return false;
  const pause = hasSurplus(facts.versions, policy)
    ? times.surplusAgeMs / PRUNES_PER_AGE
    : Math.min(policy.retentionMs / PRUNES_PER_RETENTION, MAX_PRUNE_PAUSE_MS);
  return performance.now() - prunedAt >= (leftReplaced ? times.replacedMs : pause);
}
