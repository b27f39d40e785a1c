import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import { backoffMs } from "../../../runtime/clocks.ts";
import { putNewest } from "../../../runtime/collections.ts";
import type { KnownVersions } from "../format/versions/examine-versions.ts";

/** Times of upkeep, in milliseconds. */
export interface UpkeepTimes {
  /** Quiet time after a write, after which a table is inspected, so that a burst of writes is followed by one run. */
  readonly settleMs: number;
  /** Longest time from a first write to the inspection. */
  readonly waitMs: number;
  /** Quiet time after which work is done that is not urgent. */
  readonly quietMs: number;
  /** Quiet time after a commit that a client or another process made, before which a table is not compacted. */
  readonly commitQuietMs: number;
  /** Rest of a table after a run, as a multiple of its duration: if there was little to rewrite, and else. */
  readonly cheapRest: number;
  readonly rest: number;
  /** Rest of a table after a cluster has joined its fragments, until it joins them again: this process works for each commit. */
  readonly clusterRestMs: number;
  /** Time until the next try while an index is built, a column is filled, or results take the memory. */
  readonly busyMs: number;
  /** Pause after a first failure, which doubles with each further one, and the longest pause. */
  readonly retryMs: number;
  readonly maxRetryMs: number;
  /** Minimum age of a version that is pruned, whatever the retention. */
  readonly minAgeMs: number;
  /** Minimum age of a version beyond the maximum number, on a disk and in an object store, which gateways share. */
  readonly surplusAgeMs: number;
  readonly remoteSurplusAgeMs: number;
  /** Minimum time since another version has replaced a version that is pruned: calls of other gateways may still read it. */
  readonly replacedMs: number;
  /** How long a table without writes and work is remembered. */
  readonly keepMs: number;
  /** Shortest time from one sweep over all tables to the next, and between its looks at two tables. */
  readonly sweepMs: number;
  readonly lookMs: number;
  /** Time after which a sweep has a table inspected whose version has not changed. */
  readonly relookMs: number;
}

export const UPKEEP_TIMES: UpkeepTimes = {
  settleMs: 500,
  waitMs: 700,
  quietMs: 3_000,
  commitQuietMs: 10 * 60_000,
  cheapRest: 2,
  rest: 9,
  clusterRestMs: 60_000,
  busyMs: 5_000,
  retryMs: 200,
  maxRetryMs: 30_000,
  minAgeMs: 60_000,
  surplusAgeMs: 30_000,
  remoteSurplusAgeMs: 5 * 60_000,
  replacedMs: 30_000,
  keepMs: 60 * 60_000,
  sweepMs: 10 * 60_000,
  lookMs: 1_000,
  relookMs: 24 * 60 * 60_000,
};

/** The times that differ in object stores, where an inspection takes several requests, and which gateways share. */
export const REMOTE_UPKEEP_TIMES: Partial<UpkeepTimes> = { waitMs: 2_000, replacedMs: 5 * 60_000 };

/** The times that differ for tables of a foreign catalog, which describes a table again for each try. */
export const FOREIGN_UPKEEP_TIMES: Partial<UpkeepTimes> = {
  ...REMOTE_UPKEEP_TIMES,
  busyMs: 30_000,
  maxRetryMs: UPKEEP_TIMES.sweepMs,
};

/** Author of a write: the gateway, or a client or another process, which commits itself. */
export type Writer = "gateway" | "client";

/** A table that was written to, or has work left. Times are those of `performance.now`. */
export interface ActiveTable {
  readonly id: Identifier;
  /** First write since the last inspection began; undefined without one. */
  firstWrite: number | undefined;
  lastWrite: number;
  /** Last commit that a client or another process made. */
  lastCommit: number;
  /** When it is inspected. */
  due: number;
  /** Earliest time of the next inspection. */
  notBefore: number;
  failures: number;
  isRunning: boolean;
  /** The version at which the last run left nothing that it could do; undefined without one. */
  finishedAt: bigint | undefined;
  /** Whether the last joining of fragments found none to join, so that other work has to precede it. */
  joinsNothing: boolean;
  /** The version that a cluster has left, whose fragments it does not join any further; undefined without one. */
  compactedAt: bigint | undefined;
  /** Whether a cluster has joined its fragments, and work on its indices follows before it gets the table again. */
  areIndicesNext: boolean;
  /** When a cluster had joined its fragments. */
  handedOverAt: number;
  /** When its versions were pruned. */
  prunedAt: number;
  /** Whether versions were left then that others had just replaced. */
  leftReplaced: boolean;
  /** The versions that were read to prune others, so that each is read once. */
  readonly known: KnownVersions;
}

/** Result of an inspection, and of the work that followed. */
export interface Tended {
  /** Time without another inspection, in milliseconds. */
  readonly restMs: number;
  /** Time until the next inspection even without a write, in milliseconds; undefined if only a write brings work. */
  readonly againMs: number | undefined;
  /** Whether the table does not exist, so that nothing about it is remembered. Default: false. */
  readonly isGone?: boolean;
}

/**
 * Maximum number of tables that are remembered. Callers can name any number of tables, and those of a failing upstream stay until it
 * answers.
 */
export const MAX_ACTIVE = 50_000;

/** Maximum number of tables that are worked on or wait for their turn, and so are not forgotten; others are taken when these end. */
export const MAX_TAKEN = 10_000;

/** The tables with recent writes. */
export interface Activity {
  /**
   * Notes a write of the gateway, or a commit that a client or another process made. At most {@link MAX_ACTIVE} tables are remembered; the one
   * whose last write is the oldest makes room, unless it is taken.
   *
   * @returns whether a table was forgotten that waits for an inspection
   */
  note(id: Identifier, now: number, by?: Writer): boolean;
  /** Whether the table was written to recently. */
  has(id: Identifier): boolean;
  /** Takes tables whose inspection is due, the most overdue first and {@link MAX_TAKEN} at a time; {@link Activity.end} gives them back. */
  takeDue(now: number): readonly ActiveTable[];
  /** Records the result of an inspection; undefined for a failure. */
  end(table: ActiveTable, tended: Tended | undefined, now: number): void;
  /** Number of tables that wait for an inspection or are inspected. */
  readonly waiting: number;
}

/** Creates an empty record. */
export function createActivity(times: UpkeepTimes): Activity {
  const tables = new Map<string, ActiveTable>();
  let taken = 0;

  return {
    note(id, now, by = "gateway") {
      const key = joinIdentifier(id);
      const table = tables.get(key) ?? newTable(id);
      let forgotten = putNewest(tables, key, table, MAX_ACTIVE);
      // A second record of a table that is taken would have it worked on twice at a time.
      while (forgotten?.isRunning)
        forgotten = putNewest(tables, joinIdentifier(forgotten.id), forgotten, MAX_ACTIVE);
      table.firstWrite ??= now;
      table.lastWrite = now;
      if (by === "client") table.lastCommit = now;
      table.due = Math.min(now + times.settleMs, table.firstWrite + times.waitMs);
      return forgotten !== undefined && isWaiting(forgotten);
    },
    has: (id) => tables.has(joinIdentifier(id)),
    takeDue(now) {
      if (taken === MAX_TAKEN) return [];
      const due: ActiveTable[] = [];
      for (const [key, table] of tables) {
        if (table.isRunning) continue;
        if (now >= Math.max(table.due, table.notBefore)) due.push(table);
        else if (now - table.lastWrite > times.keepMs && isIdle(table, now)) tables.delete(key);
      }
      const first = due.sort((a, b) => a.due - b.due).slice(0, MAX_TAKEN - taken);
      taken += first.length;
      for (const table of first) {
        table.isRunning = true;
        table.firstWrite = undefined;
        table.due = Number.POSITIVE_INFINITY;
      }
      return first;
    },
    end(table, tended, now) {
      taken -= 1;
      table.isRunning = false;
      if (tended === undefined) {
        const pause = backoffMs(table.failures, times.retryMs, times.maxRetryMs);
        table.failures += 1;
        table.notBefore = now + pause;
        table.due = Math.min(table.due, now + pause);
        return;
      }
      // Callers can name any number of tables that do not exist.
      if (tended.isGone && table.firstWrite === undefined) tables.delete(joinIdentifier(table.id));
      table.failures = 0;
      table.notBefore = now + tended.restMs;
      if (tended.againMs !== undefined) table.due = Math.min(table.due, now + tended.againMs);
    },
    get waiting() {
      let count = 0;
      for (const table of tables.values()) if (isWaiting(table)) count += 1;
      return count;
    },
  };
}

function isWaiting({ due, isRunning }: ActiveTable): boolean {
  return isRunning || due < Number.POSITIVE_INFINITY;
}

function isIdle({ due, notBefore }: ActiveTable, now: number): boolean {
  return due === Number.POSITIVE_INFINITY && now >= notBefore;
}

function newTable(id: Identifier): ActiveTable {
  return {
    id,
    firstWrite: undefined,
    lastWrite: Number.NEGATIVE_INFINITY,
    lastCommit: Number.NEGATIVE_INFINITY,
    due: Number.POSITIVE_INFINITY,
    notBefore: Number.NEGATIVE_INFINITY,
    failures: 0,
    isRunning: false,
    finishedAt: undefined,
    joinsNothing: false,
    compactedAt: undefined,
    areIndicesNext: false,
    handedOverAt: Number.NEGATIVE_INFINITY,
    prunedAt: Number.NEGATIVE_INFINITY,
    leftReplaced: false,
    known: new Map(),
  };
}
