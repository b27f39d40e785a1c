import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { ChangeType } from "../../../namespace/change-event.ts";
import type { UpkeepMetrics } from "../../../namespace/figures.ts";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import {
  type AnyHandler,
  type BackendOperations,
  callIn,
  wrapOperations,
} from "../../../namespace/lance-namespace.ts";
import { factsOf, isReadOperation } from "../../../namespace/operations/operations.ts";
import { createTurns } from "../concurrency/turns.ts";
import { latestVersion } from "../format/versions/version-files.ts";
import { datasetOf } from "../operations/tables/open-data.ts";
import {
  type ActiveTable,
  createActivity,
  MAX_ACTIVE,
  UPKEEP_TIMES,
  type UpkeepTimes,
  type Writer,
} from "./activity.ts";
import type { UpkeepFigures } from "./optimize.ts";
import { DEFAULT_POLICY, type UpkeepPolicy } from "./policy.ts";
import { type TendContext, tend } from "./tend.ts";
import type { TendedTable, UpkeepTables } from "./upkeep-tables.ts";

/** Options of {@link startUpkeep}. */
export interface UpkeepOptions {
  /** The policy of tables without properties. Default: {@link DEFAULT_POLICY}. */
  readonly policy?: Partial<UpkeepPolicy> | undefined;
  /** Default: {@link UPKEEP_TIMES}. */
  readonly times?: Partial<UpkeepTimes> | undefined;
  /** Maximum number of tables that are worked on at a time. Default: the number of cores. */
  readonly concurrency?: number | undefined;
  /** Default: nothing is counted. */
  readonly metrics?: UpkeepMetrics | undefined;
  /** Whether all tables are looked at in turn, too, which one worker of a process does. Default: true. */
  readonly sweeps?: boolean | undefined;
}

/** The background work that looks after the tables of a catalog. */
export interface Upkeep {
  /** Notes a write to a table. */
  readonly note: NoteWrite;
  /** Stops; work of the engine, which cannot be stopped, is waited for a moment. */
  close(): Promise<void>;
}

/** Interval at which due tables are looked for while some wait, in milliseconds. */
const TICK_MS = 100;

/**
 * Longest wait for running work when upkeep ends, in milliseconds. The lease of work that is left behind keeps other gateways from
 * the table for a minute.
 */
const END_MS = 3_000;

/** Starts to look after tables that can be written. */
export function startUpkeep(tables: UpkeepTables, log: Logger, options: UpkeepOptions = {}): Upkeep {
  const { concurrency = availableParallelism(), sweeps = true, metrics } = options;
  const times = { ...UPKEEP_TIMES, ...tables.times, ...options.times };
  const activity = createActivity(times);
  const turns = createTurns(concurrency);
  const stop = new AbortController();
  const running = new Set<Promise<void>>();
  let isEnding = false;
  /** When the log last said that tables were forgotten. */
  let warnedAt = Number.NEGATIVE_INFINITY;
  const tending: TendContext = {
    tables,
    policy: { ...DEFAULT_POLICY, ...options.policy },
    times,
    log,
    signal: stop.signal,
    onRun,
    onMiss: (reason) => metrics?.missed(reason),
  };
  let timer: NodeJS.Timeout | undefined;

  function onRun(figures: UpkeepFigures, milliseconds: number): void {
    metrics?.done({ ...figures, seconds: milliseconds / 1000 });
    log.debug({ ...figures, ms: Math.round(milliseconds) }, "a table has been looked after");
  }
  function schedule(): void {
    if (timer !== undefined || isEnding || activity.waiting === 0) return;
    timer = setTimeout(() => {
      timer = undefined;
      for (const table of activity.takeDue(performance.now())) start(table);
      schedule();
    }, TICK_MS).unref();
  }
  function start(table: ActiveTable): void {
    const work = attend(table).finally(() => {
      running.delete(work);
      schedule();
    });
    running.add(work);
  }
  async function attend(table: ActiveTable): Promise<void> {
    try {
      const tended = await turns.run(
        (leave) => tend(tending, table, leave),
        () => !isEnding,
      );
      activity.end(table, tended, performance.now());
    } catch (error) {
      activity.end(table, undefined, performance.now());
      if (stop.signal.aborted) return;
      metrics?.missed("failed");
      log.debug({ err: error, table: joinIdentifier(table.id) }, "a table cannot be looked after now");
    }
  }
  function note(id: Identifier, by?: Writer): void {
    if (id.length === 0) return;
    const now = performance.now();
    if (activity.note(id, now, by) && now - warnedAt > times.keepMs) {
      warnedAt = now;
      log.warn(
        { most: MAX_ACTIVE },
        "more tables wait for upkeep than are remembered; the oldest ones are looked after when a sweep comes to them",
      );
    }
    schedule();
  }
  const unwatch = metrics?.watch(() => activity.waiting);
  /** Notes a new version. The commit is somebody else's unless a gateway, this or another one, looks after the table. */
  async function report({ table: { id, location }, leases }: TendedTable): Promise<void> {
    const isOurs = activity.has(id) || (await leases.sinceOptimized(location)) < times.commitQuietMs;
    note(id, isOurs ? "gateway" : "client");
  }
  const sweeping = sweeps ? sweepTables(tables, times, report, log, stop.signal) : undefined;
  return {
    note,
    async close() {
      isEnding = true;
      clearTimeout(timer);
      const { signal } = stop;
      const late = sleep(END_MS, undefined, { signal }).catch(() => {});
      await Promise.race([Promise.all(running), late]);
      stop.abort();
      await Promise.all([sweeping, ...running]);
      unwatch?.();
    },
  };
}

/** A look at a table. */
interface Look {
  readonly version: bigint;
  /** When the table was last reported, in milliseconds of `performance.now`. */
  readonly reportedAt: number;
}

/**
 * Looks at all tables of a catalog in turn, for writes of other processes and for versions that have grown old. It
 * takes a request or two for each table, at a bounded rate, and ends when the signal aborts.
 *
 * @param report gets a table with a version that was not seen before, and each table after some time
 */
export async function sweepTables(
  tables: Pick<UpkeepTables, "walk" | "withTable" | "finishAbandoned" | "removeRemains">,
  { sweepMs, lookMs, relookMs }: Pick<UpkeepTimes, "sweepMs" | "lookMs" | "relookMs">,
  report: (tended: TendedTable) => Promise<void>,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const pause = (ms: number) => sleep(ms, undefined, { ref: false, signal }).catch(() => {});
  let seen = new Map<string, Look>();
  let resolvedAt = performance.now();

  function look(id: Identifier, now: number): Promise<Look | undefined> {
    const lookIn = async (tended: TendedTable): Promise<Look | undefined> => {
      const newest = await latestVersion(datasetOf(tended.context, tended.table));
      if (newest === undefined) return undefined;
      const last = seen.get(joinIdentifier(id));
      if (last?.version === newest.version && now - last.reportedAt < relookMs) return last;
      await report(tended);
      return { version: newest.version, reportedAt: now };
    };
    return tables.withTable(id, lookIn, signal);
  }
  /** Finishes what other processes have left, also during a round, which takes long in a large catalog. */
  async function resolveIfDue(): Promise<void> {
    if (performance.now() - resolvedAt < sweepMs) return;
    resolvedAt = performance.now();
    await tables.finishAbandoned?.();
  }
  async function lookAtAll(): Promise<void> {
    const found = new Map<string, Look>();
    for await (const id of tables.walk(() => pause(lookMs), signal)) {
      await pause(lookMs);
      if (signal.aborted) return;
      const name = joinIdentifier(id);
      // A table that cannot be read must not keep the others from being looked at.
      const looked = await look(id, performance.now()).catch((error: unknown) => {
        log.debug({ err: error, table: name }, "a table cannot be looked at for upkeep now");
        return seen.get(name);
      });
      if (looked !== undefined) found.set(name, looked);
      await resolveIfDue();
    }
    seen = found;
  }
  while (!signal.aborted) {
    const startedAt = performance.now();
    try {
      await lookAtAll();
      await resolveIfDue();
      await tables.removeRemains?.();
    } catch (error) {
      log.debug({ err: error }, "the tables cannot be looked at for upkeep now");
    }
    await pause(Math.max(lookMs, startedAt + sweepMs - performance.now()));
  }
}

/** Gets the object of an operation that may have written, and who has committed. */
export type NoteWrite = (id: Identifier, by?: Writer) => void;

/** Changes that only add a name, without data that upkeep could look after or a view could read. */
const WITHOUT_DATA: ReadonlySet<ChangeType | undefined> = new Set<ChangeType>([
  "namespace.created",
  "table.declared",
]);

/** Notes the object of each operation that may write data, once it has ended. The calls of drivers name none. */
export function noteWrites(note: NoteWrite, all: BackendOperations): BackendOperations {
  return wrapOperations(all, (handler, localName) => {
    const { event, checksKey = false } = factsOf(localName) ?? {};
    return isReadOperation(localName) || checksKey || WITHOUT_DATA.has(event)
      ? handler
      : noted(note, localName === "createTableVersion" ? "client" : "gateway", handler);
  });
}

function noted(note: NoteWrite, by: Writer, handler: AnyHandler): AnyHandler {
  return async (...args) => {
    try {
      return await handler(...args);
    } finally {
      note(callIn(args).id, by);
    }
  };
}
